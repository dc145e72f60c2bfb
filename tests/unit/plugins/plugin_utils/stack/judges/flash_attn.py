# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cases of FlashAttention, and what is wrong with a stack that has it: read from its table, without the resolver."""

from __future__ import annotations

import checker
from extension_judge import check_extension

TABLE = checker.table("flash_attn")
ROWS = {row["version"]: row for row in TABLE["rows"]}
LOOSE = ["latest", "2.8", ">=2.8.2"]
CASES = """
- {name: FlashAttention of the site, rule: flash-attn-pytorch, request: {flash_attn: "2.8.2", wheels: site},
   gets: {environments.0.requirements.1: flash-attn==2.8.2}}
- {name: FlashAttention that nobody has a wheel of, request: {flash_attn: latest}, error: "The package index has flash_attn as source only"}
- {name: FlashAttention on processors, gpus: [], request: {flash_attn: latest, wheels: site}, error: flash_attn requires a GPU}
- {name: FlashAttention over a PyTorch before its first, rule: flash-attn-pytorch,
   request: {flash_attn: latest, wheels: site, pytorch: "2.1.2"},
   refused: {between: [flash_attn, pytorch], rule: flash-attn-pytorch, says: "requires PyTorch >=2.2, not 2.1.2"}}
- {name: FlashAttention and CUDA 12, rule: flash-attn-pytorch-cuda, request: {flash_attn: latest, wheels: site, pytorch_index: cu121},
   gets: {environments.0.index.name: cu121}}
- {name: FlashAttention and CUDA 11, rule: flash-attn-pytorch-cuda, request: {flash_attn: latest, wheels: site, pytorch_index: cu118},
   refused: {between: [flash_attn, pytorch_index], rule: flash-attn-pytorch-cuda, says: "is compiled with CUDA 12.0 or newer"}}
- {name: FlashAttention on Ampere, rule: flash-attn-gpu, gpus: [A100 SXM4 80GB], request: {flash_attn: latest, wheels: site}, gets: {driver.branch: "595"}}
- {name: FlashAttention on Turing, rule: flash-attn-gpu, gpus: [Tesla T4], request: {flash_attn: latest, wheels: site},
   refused: {between: [flash_attn, gpus], rule: flash-attn-gpu, says: "supports compute capability 8.0 and newer"}}
- {name: FlashAttention on a Python that it is for, rule: flash-attn-python, request: {flash_attn: latest, wheels: site, python: "3.9"}, gets: {python: "3.9"}}
- {name: FlashAttention on a Python before its first, rule: flash-attn-python, request: {flash_attn: latest, wheels: site, python: "3.8"},
   refused: {between: [flash_attn, python], rule: flash-attn-python, says: "not for 3.8"}}
"""
GPUS_ONLY = True
NEEDS = {"wheels": "site"}
FUTURES = {}


def published():
    return list(ROWS)


def check(stack, environment, cuda_majors):
    release = environment["frameworks"]["flash_attn"]
    wrong = check_extension(stack, environment, ROWS[release], f"flash-attn=={release}")
    builds = checker.TORCH[environment["frameworks"]["pytorch"]]["builds"]
    cuda = next(one for one in builds if one["tag"] == checker.tag_of(environment)).get("cuda", "0")
    if checker.n(checker.mm(cuda)) < checker.n(TABLE["min_cuda"]):
        wrong.append("FlashAttention is not compiled for this CUDA")
    if any(checker.n(gpu["compute_capability"]) < checker.n(TABLE["min_cc"]) for gpu in stack["gpus"]):
        wrong.append("FlashAttention does not support this GPU")
    return wrong
