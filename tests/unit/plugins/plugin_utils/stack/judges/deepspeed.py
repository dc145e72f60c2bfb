# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cases of DeepSpeed, and what is wrong with a stack that has it: read from its table, without the resolver."""

from __future__ import annotations

import checker
from extension_judge import check_extension

TABLE = checker.table("deepspeed")
ROWS = {row["version"]: row for row in TABLE["rows"]}
LOOSE = ["latest", "0.18", "<0.19", ">=0.18"]
CASES = """
- {name: DeepSpeed of the site, rule: deepspeed-pytorch, request: {deepspeed: latest, wheels: site},
   gets: {environments.0.requirements: [torch==2.14.1, deepspeed==0.19.8, numpy]},
   warns: "for which the host has no CUDA toolkit"}
- {name: DeepSpeed that nobody has a wheel of, request: {deepspeed: latest}, error: "The package index has deepspeed as source only"}
- {name: DeepSpeed over a PyTorch before its first, rule: deepspeed-pytorch,
   request: {deepspeed: latest, wheels: site, pytorch: "1.13", python: "3.10"},
   refused: {between: [deepspeed, pytorch], rule: deepspeed-pytorch, says: "requires PyTorch >=2.0.0, not 1.13"}}
- {name: DeepSpeed with a toolkit of another minor, rule: deepspeed-cuda,
   request: {deepspeed: latest, wheels: site, pytorch_index: cu126, cuda: "12.4"}, gets: {cuda.version: 12.4.1}}
- {name: DeepSpeed with a toolkit of another minor of CUDA 13, rule: deepspeed-cuda,
   request: {deepspeed: latest, wheels: site, pytorch_index: cu130, cuda: "13.1"},
   refused: {between: [cuda, deepspeed], rule: deepspeed-cuda, says: "does not compile with CUDA 13.1"}}
- {name: DeepSpeed on a Python, rule: deepspeed-python, request: {deepspeed: latest, wheels: site, python: "3.10"}, gets: {python: "3.10"}}
"""
GPUS_ONLY = False
NEEDS = {"wheels": "site"}


def old_pythons(subjects):
    for row in subjects["deepspeed"]["rows"]:
        row["python"] = ["3.11"]


FUTURES = {
    "deepspeed-python": (old_pythons, {"request": {"deepspeed": "latest", "wheels": "site", "python": "3.10"}}),
}


def published():
    return list(ROWS)


def check(stack, environment, cuda_majors):
    release = environment["frameworks"]["deepspeed"]
    wrong = check_extension(stack, environment, ROWS[release], f"deepspeed=={release}")
    tag = checker.tag_of(environment) if "pytorch" in environment["frameworks"] else "cpu"
    if stack["cuda"] and tag != "cpu":
        builds = checker.TORCH[environment["frameworks"]["pytorch"]]["builds"]
        ours = checker.mm(stack["cuda"]["version"])
        theirs = checker.mm(next(one for one in builds if one["tag"] == tag)["cuda"])
        major = ours.partition(".")[0]
        same = major == theirs.partition(".")[0]
        if ours != theirs and not (same and major in TABLE["any_minor"]):
            wrong.append("DeepSpeed does not compile with this toolkit")
    return wrong
