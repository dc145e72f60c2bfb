# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cases of Triton, and what is wrong with a stack that has it: read from its table, without the resolver."""

from __future__ import annotations

import checker
from extension_judge import check_extension

TABLE = checker.table("triton")
ROWS = {row["version"]: row for row in TABLE["rows"]}
LOOSE = ["latest", "3.5", "<3.2", ">=3.3"]
CASES = """
- {name: the Triton of the newest PyTorch, rule: triton-pytorch, request: {triton: latest},
   gets: {environments.0.requirements: [torch==2.14.1, triton==3.8.0, numpy]}}
- {name: a Triton brings the PyTorch that requires it, request: {triton: "3.6"},
   gets: {environments.0.frameworks: {pytorch: 2.11.0, triton: 3.6.0}}}
- {name: another Triton than PyTorch's, rule: triton-pytorch, request: {triton: "3.5.0", pytorch: "2.11.0"},
   refused: {between: [pytorch, triton], rule: triton-pytorch, says: "PyTorch 2.11.0 requires a Triton other than 3.5.0", works: "triton: 3.6.0"}}
- {name: Triton on processors, gpus: [], request: {triton: latest}, error: triton requires a GPU}
- {name: Triton on a Python that it has wheels for, rule: triton-python, request: {triton: "3.3.1", python: "3.9"}, gets: {python: "3.9"}}
- {name: Triton on a Python without wheels, rule: triton-python, request: {triton: "3.2.0", python: "3.14"},
   refused: {between: [python, triton], rule: triton-python, says: "not for 3.14"}}
- {name: Triton on aarch64, rule: triton-arch, arch: aarch64, gpus: [GH200], request: {triton: "3.6.0"}, gets: {environments.0.frameworks.triton: 3.6.0}}
- {name: Triton before it had wheels for aarch64, rule: triton-arch, arch: aarch64, gpus: [GH200], request: {triton: "3.3.1"},
   refused: {between: [arch, triton], rule: triton-arch, says: "Triton 3.3.1 has no wheels for aarch64"}}
- {name: Triton on Volta, rule: triton-gpu, gpus: [V100 PCIe], request: {triton: latest}, gets: {environments.0.requirements.1: triton==3.8.0}}
- {name: Triton on Pascal, rule: triton-gpu, gpus: [Tesla P100-PCIE-16GB], request: {triton: latest},
   refused: {between: [gpus, triton], rule: triton-gpu, says: "supports compute capability 7.0 and newer"}}
- {name: Triton with the glibc of a system, rule: triton-glibc, request: {triton: "3.6.0"}, gets: {environments.0.frameworks.triton: 3.6.0}}
"""
GPUS_ONLY = True
NEEDS = {}


def old_glibc(subjects):
    row = next(row for row in subjects["distros"]["rows"] if (row["id"], row["version"]) == ("ubuntu", "22.04"))
    row["glibc"] = "2.12"
    for torch in subjects["torch"]["rows"]:
        torch["glibc"] = "2.12"


def old_pythons(subjects):
    for row in subjects["triton"]["rows"]:
        row["python"] = ["3.11"]


FUTURES = {
    "triton-glibc": (old_glibc, {"request": {"triton": "3.6.0"}}),
    "triton-python": (old_pythons, {"request": {"triton": "3.6.0", "python": "3.10"}}),
}


def published():
    return list(ROWS)


def check(stack, environment, cuda_majors):
    release = environment["frameworks"]["triton"]
    wrong = check_extension(stack, environment, ROWS[release], f"triton=={release}")
    if any(checker.n(gpu["compute_capability"]) < checker.n(TABLE["min_cc"]) for gpu in stack["gpus"]):
        wrong.append("Triton does not compile for this GPU")
    return wrong
