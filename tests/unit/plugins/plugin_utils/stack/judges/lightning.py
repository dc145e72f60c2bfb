# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cases of Lightning, and what is wrong with a stack that has it: read from its table, without the resolver."""

from __future__ import annotations

import checker
from extension_judge import check_extension

ROWS = {row["version"]: row for row in checker.table("lightning")["rows"]}
LOOSE = ["latest", "2.5", "<2.3", ">=2.4"]
CASES = """
- {name: Lightning over the newest PyTorch, rule: lightning-pytorch, request: {lightning: latest},
   gets: {environments.0.requirements: [torch==2.14.1, lightning==2.6.6, numpy], torch: 2.14.1+cu130}}
- {name: Lightning over an older PyTorch, request: {lightning: latest, pytorch: "2.0.1"},
   gets: {environments.0.frameworks: {lightning: 2.3.3, pytorch: 2.0.1}}}
- {name: Lightning on processors, gpus: [], request: {lightning: "2.5"}, gets: {environments.0.accelerator: cpu}}
- {name: Lightning over a PyTorch before its first, rule: lightning-pytorch, request: {lightning: "2.6.1", pytorch: "2.0.1", pytorch_index: cu118},
   refused: {between: [lightning, pytorch], rule: lightning-pytorch, says: "requires PyTorch >=2.1.0,<4.0, not 2.0.1"}}
- {name: Lightning on a Python that it is for, rule: lightning-python, request: {lightning: "2.4.0", python: "3.9"},
   gets: {python: "3.9"}}
- {name: Lightning on a Python before its first, rule: lightning-python, request: {lightning: "2.6.6", python: "3.9"},
   refused: {between: [lightning, python], rule: lightning-python, says: "is for Python 3.10 to 3.15, not for 3.9"}}
"""
GPUS_ONLY = False
NEEDS = {}
FUTURES = {}


def published():
    return list(ROWS)


def check(stack, environment, cuda_majors):
    release = environment["frameworks"]["lightning"]
    return check_extension(stack, environment, ROWS[release], f"lightning=={release}")
