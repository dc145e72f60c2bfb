# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cases of Transformer Engine, and what is wrong with a stack that has it: read from its table, without the resolver."""

from __future__ import annotations

import checker
from extension_judge import check_extension

TABLE = checker.table("transformer_engine")
ROWS = {row["version"]: row for row in TABLE["rows"]}
LOOSE = ["latest", "2.9", ">=2.14"]
CASES = """
- {name: Transformer Engine over CUDA 13, rule: transformer-engine-pytorch-cuda, request: {transformer_engine: "2.20.2", wheels: site},
   gets: {torch: 2.14.1+cu130,
          environments.0.requirements: [torch==2.14.1, transformer-engine==2.20.2, transformer-engine-cu13==2.20.2, transformer-engine-torch==2.20.2, numpy]}}
- {name: Transformer Engine over CUDA 12, rule: transformer-engine-pytorch-cuda,
   request: {transformer_engine: "2.9", wheels: site, pytorch_index: cu126},
   gets: {environments.0.requirements.2: transformer-engine-cu12==2.9.0}}
- {name: Transformer Engine and CUDA 11, rule: transformer-engine-pytorch-cuda,
   request: {transformer_engine: latest, wheels: site, pytorch_index: cu118},
   refused: {between: [pytorch_index, transformer_engine], rule: transformer-engine-pytorch-cuda, says: "needs CUDA 12.1 or newer"}}
- {name: Transformer Engine and the cuDNN of a PyTorch, request: {transformer_engine: "2.9", wheels: site, pytorch: "2.6.0", pytorch_index: cu124},
   refused: {between: [pytorch_index, transformer_engine], rule: transformer-engine-pytorch-cuda, works: "pytorch_index: cu126",
             says: "needs cuDNN 9.3 or newer; PyTorch 2.6.0+cu124 brings 9.1.0.70"}}
- {name: Transformer Engine without its extension,
   request: {transformer_engine: latest}, error: "The package index has transformer_engine as source only"}
- {name: Transformer Engine on processors, gpus: [],
   request: {transformer_engine: latest, wheels: site}, error: transformer_engine requires a GPU}
- {name: Transformer Engine over the PyTorch of a driver, rule: transformer-engine-pytorch,
   request: {transformer_engine: latest, wheels: site, driver: "535"},
   gets: {driver.branch: "535", torch: 2.14.1+cu126, environments.0.requirements.2: transformer-engine-cu12==2.20.2}}
- {name: Transformer Engine over a PyTorch with an old cuDNN, rule: transformer-engine-pytorch-cuda,
   request: {transformer_engine: latest, wheels: site, pytorch: "2.4.0"},
   refused: {between: [pytorch, transformer_engine], rule: transformer-engine-pytorch-cuda, says: "brings 9.1.0.70"}}
- {name: Transformer Engine on Ampere, rule: transformer-engine-gpu, gpus: [A100 SXM4 80GB],
   request: {transformer_engine: latest, wheels: site}, gets: {driver.branch: "595"}}
- {name: Transformer Engine on Turing, rule: transformer-engine-gpu, gpus: [Tesla T4], request: {transformer_engine: latest, wheels: site},
   refused: {between: [gpus, transformer_engine], rule: transformer-engine-gpu, says: "supports compute capability 8.0 and newer"}}
- {name: Transformer Engine on EL 8, rule: transformer-engine-glibc, os: rocky 8,
   request: {transformer_engine: "2.14.1", wheels: site}, gets: {environments.0.frameworks.transformer_engine: 2.14.1}}
- {name: Transformer Engine on a Python that it is for, rule: transformer-engine-python,
   request: {transformer_engine: "2.9", wheels: site, python: "3.10"}, gets: {python: "3.10"}}
- {name: Transformer Engine on a Python before its first, rule: transformer-engine-python,
   request: {transformer_engine: "2.9", wheels: site, python: "3.9"},
   refused: {between: [python, transformer_engine], rule: transformer-engine-python, says: "not for 3.9"}}
"""
GPUS_ONLY = True
NEEDS = {"wheels": "site"}


def old_glibc(subjects):
    row = next(row for row in subjects["distros"]["rows"] if (row["id"], row["version"]) == ("ubuntu", "22.04"))
    row["glibc"] = "2.27"
    for torch in subjects["torch"]["rows"]:
        torch["glibc"] = "2.12"


def new_cudnn(subjects):
    for torch in subjects["torch"]["rows"]:
        for build in torch["builds"]:
            build["cudnn"] = "9.26.0.51"


FUTURES = {
    "transformer-engine-glibc": (old_glibc, {"request": {"transformer_engine": "2.9", "wheels": "site"}}),
    "transformer-engine-pytorch": (
        new_cudnn,
        {"request": {"transformer_engine": "2.9", "wheels": "site", "pytorch": "2.5.1", "pytorch_index": "cu124"}},
    ),
}


def published():
    return list(ROWS)


def check(stack, environment, cuda_majors):
    release, n = environment["frameworks"]["transformer_engine"], checker.n
    wrong = check_extension(
        stack, environment, {**ROWS[release], "glibc": TABLE["glibc"]}, f"transformer-engine=={release}"
    )
    builds = checker.TORCH[environment["frameworks"]["pytorch"]]["builds"]
    build = next(one for one in builds if one["tag"] == checker.tag_of(environment))
    cuda = build.get("cuda", "0")
    if n(checker.mm(cuda)) < n(TABLE["min_cuda"]) or n(build.get("cudnn") or "99") < n(TABLE["min_cudnn"]):
        wrong.append("Transformer Engine is not for the CUDA or cuDNN of this PyTorch")
    core = f"transformer-engine-cu{cuda.split('.')[0]}=={release}"
    if not {core, f"transformer-engine-torch=={release}"} <= set(environment["requirements"]):
        wrong.append("nothing installs Transformer Engine's core, or its extension")
    if any(n(gpu["compute_capability"]) < n(TABLE["min_cc"]) for gpu in stack["gpus"]):
        wrong.append("Transformer Engine does not support this GPU")
    return wrong
