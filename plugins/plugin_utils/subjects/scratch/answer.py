# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scratch as plain values: variables and facts in, what the role and the checks need out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...documents.comparison import Comparison
from ...documents.parsing import parse
from ...documents.scratch import ScratchNode
from ...problems.text import describe
from .compare import compare_scratch, compare_unmeasured, compare_unwanted
from .request import DEFAULTS, problems, request

# What has to be known of a node's variables.
VARIABLES = (*DEFAULTS, "cluster_ssh_user")


def answer(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return {question: options of module scratch_facts, options: those of module scratch, problems: sentences}."""
    wanted = request(variables)
    found = [describe(one) for one in problems(wanted)]
    return {"question": wanted.question, "options": wanted.arguments, "problems": found}


def comparisons(variables: Mapping[str, Any], facts: Mapping[str, Any]) -> list[Comparison]:
    """Return every comparison of a node's scratch; raise DocumentError for facts of the wrong shape."""
    wanted = request(variables)
    if not wanted.present:
        state = facts.get("gpu_node_state") or {}
        return compare_unwanted(bool(state.get("scratch_recorded")), wanted.mount_point)
    if not facts.get("gpu_scratch"):
        return compare_unmeasured(wanted.mount_point)
    return compare_scratch(wanted, parse(ScratchNode, facts["gpu_scratch"], "gpu_scratch"))
