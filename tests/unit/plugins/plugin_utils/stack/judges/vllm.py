# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cases of vLLM, and what is wrong with a stack that has it: read from its table, without the resolver."""

from __future__ import annotations

import checker
from extension_judge import check_extension, is_default_build

TABLE = checker.table("vllm")
ROWS = {row["version"]: row for row in TABLE["rows"]}
LOOSE = ["latest", "0.11", "<0.12", ">=0.20"]
CASES = """
- {name: vLLM brings the newest verified PyTorch that a release takes, request: {vllm: latest},
   gets: {environments.0.requirements: [torch==2.13.0, vllm==0.32.0, numpy], torch: 2.13.0+cu130, driver.branch: "595"}}
- {name: vLLM brings the PyTorch that it pins, rule: vllm-pytorch, request: {vllm: "0.19.1"},
   gets: {torch: 2.10.0+cu128, environments.0.frameworks: {pytorch: 2.10.0, vllm: 0.19.1}}}
- {name: PyTorch decides which vLLM, request: {vllm: latest, pytorch: "2.9.1"},
   gets: {environments.0.frameworks.vllm: 0.16.0}}
- {name: vLLM and a PyTorch that it does not pin, rule: vllm-pytorch, request: {vllm: "0.19.1", pytorch: "2.11.0"},
   refused: {between: [pytorch, vllm], rule: vllm-pytorch, says: "requires PyTorch 2.10.0, not 2.11.0", works: "vllm: 0.20.0"}}
- {name: vLLM lives beside PyTorch, environments: split, request: {vllm: latest, jax: "0.9.1"},
   gets: {environments.0.name: pytorch, environments.0.frameworks: {pytorch: 2.13.0, vllm: 0.32.0},
   environments.1.frameworks: {jax: 0.9.1}}}
- {name: vLLM brings PyTorch beside TensorFlow, environments: split, request: {vllm: latest, tensorflow: "2.20.0"},
   gets: {environments.0.frameworks: {pytorch: 2.13.0, vllm: 0.32.0}}}
- {name: vLLM without PyTorch, request: {vllm: latest, pytorch: none}, error: "The request has vllm without pytorch"}
- {name: a vLLM that nobody published, request: {vllm: "7.1"}, error: "'7.1' is not known"}
- {name: the build of the general package index by its name, rule: vllm-pytorch-build, request: {vllm: "0.32.0", pytorch_index: pypi},
   gets: {environments.0.index: null, environments.0.frameworks.pytorch: 2.13.0}}
- {name: vLLM over another build of its PyTorch, rule: vllm-pytorch-build, request: {vllm: "0.32.0", pytorch_index: cu126},
   refused: {between: [pytorch_index, vllm], rule: vllm-pytorch-build, says: "not for PyTorch 2.13.0+cu126"}}
- {name: vLLM on processors, gpus: [], request: {vllm: latest}, error: vllm requires a GPU}
- {name: vLLM on a Python that has wheels, rule: vllm-python, request: {vllm: "0.11.0", python: "3.9"}, gets: {python: "3.9"}}
- {name: vLLM on a Python without wheels, rule: vllm-python, request: {vllm: "0.32.0", python: "3.10"},
   refused: {between: [python, vllm], rule: vllm-python, says: "is for Python 3.11 to 3.14, not for 3.10"}}
- {name: vLLM on a system with its glibc, rule: vllm-glibc, request: {vllm: "0.20.0"}, gets: {torch: 2.11.0+cu130}}
- {name: vLLM on a system with an older glibc, rule: vllm-glibc, os: rocky 9, request: {vllm: "0.20.0"},
   refused: {between: [os, vllm], rule: vllm-glibc, says: "needs glibc 2.35 or newer", works: "vllm: 0.19.1"}}
- {name: a vLLM whose wheels tell no glibc, request: {vllm: "0.10.2"}, gets: {torch: 2.8.0+cu128},
   warns: "not verified: the glibc that vLLM 0.10.2 needs"}
- {name: vLLM on aarch64, rule: vllm-arch, arch: aarch64, gpus: [GH200], request: {vllm: "0.32.0"}, gets: {torch: 2.13.0+cu130}}
- {name: vLLM before it had wheels for aarch64, rule: vllm-arch, arch: aarch64, gpus: [GH200], request: {vllm: "0.10.1"},
   refused: {between: [arch, vllm], rule: vllm-arch, says: "no wheels for aarch64"}}
- {name: vLLM beside a toolkit of another CUDA, rule: vllm-cuda-major, request: {vllm: "0.32.0", cuda: "12.8"},
   gets: {torch: 2.13.0+cu130}, warns: "the toolkit of CUDA 12.8 on the host"}
- {name: vLLM on Volta, rule: vllm-gpu, gpus: [V100 PCIe], request: {vllm: latest}, gets: {torch: 2.10.0+cu128}}
- {name: vLLM on Pascal, rule: vllm-gpu, os: ubuntu 20.04, gpus: [Tesla P100 PCIe], request: {vllm: latest},
   refused: {between: [gpus, vllm], rule: vllm-gpu, says: "supports compute capability 7.0 and newer"}}
"""
FUTURES = {}
GPUS_ONLY = True
NEEDS = {}


def published():
    return list(ROWS)


def check(stack, environment, cuda_majors):
    release = environment["frameworks"]["vllm"]
    wrong = check_extension(stack, environment, ROWS[release], f"vllm=={release}")
    if "pytorch" in environment["frameworks"] and not is_default_build(environment):
        wrong.append("vLLM is compiled for another build of PyTorch")
    cuda = ROWS[release].get("cuda")
    if cuda and checker.tag_of(environment)[2:4] != cuda:
        wrong.append("vLLM is compiled for another CUDA")
    if any(checker.n(gpu["compute_capability"]) < checker.n(TABLE["min_cc"]) for gpu in stack["gpus"]):
        wrong.append("vLLM does not support this GPU")
    return wrong
