# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cases of JAX, and what is wrong with a stack that has it: read from its table, without the resolver."""

from __future__ import annotations

import checker
from packaging.specifiers import SpecifierSet

TABLE = checker.table("jax")
ROWS = {row["version"]: row for row in TABLE["rows"]}
LOOSE = ["latest", "0.4", "<0.6", ">=0.8"]
CASES = """
- {name: JAX takes the plugin for the newest CUDA that the driver runs, gpus: [A100 SXM4 80GB], request: {jax: latest},
   gets: {environments.0.requirements.0: "jax[cuda13]==0.12.0.1", environments.0.frameworks.jax: 0.12.0.1,
   driver.branch: "595"}}
- {name: JAX alone leaves PyTorch out, request: {jax: "0.9.1"},
   gets: {environments.0.frameworks: {jax: 0.9.1}, environments.0.index: null}}
- {name: JAX on processors, gpus: [], request: {jax: "0.9.1"},
   gets: {environments.0.requirements.0: jax==0.9.1, driver: null}}
- {name: JAX has an environment of its own, environments: split, request: {jax: "0.9.1", pytorch: "2.14.1"},
   gets: {environments.0.name: pytorch, environments.1.name: jax}}
- {name: a JAX that nobody published, request: {jax: "0.99"}, error: "jax"}

- {name: a distribution's Python decides which JAX, rule: jax-python, os: rocky 9,
   request: {jax: "0.4.30", python: "3.11"},
   gets: {python: "3.11"}}
- {name: JAX on a Python that it has no wheels for, rule: jax-python, request: {jax: "0.9.1", python: "3.10"},
   refused: {between: [jax, python], rule: jax-python, says: "wheels for Python 3.11 to 3.14, not for 3.10"}}
- {name: JAX on aarch64, rule: jax-arch, os: ubuntu 22.04, arch: aarch64, gpus: [GH200], request: {jax: "0.4.37"},
   gets: {environments.0.frameworks.jax: 0.4.37}}
- {name: a JAX without a plugin for aarch64, rule: jax-arch, os: ubuntu 22.04, arch: aarch64, gpus: [GH200],
   request: {jax: "0.4.38"},
   refused: {between: [arch, jax], rule: jax-arch, says: no wheels for aarch64}}
- {name: an older driver gets the plugin for CUDA 12, rule: jax-driver-floor, request: {jax: "0.9.1", driver: "535"},
   gets: {environments.0.requirements.0: "jax[cuda12]==0.9.1"}}
- {name: no plugin runs on a driver before CUDA 12, rule: jax-driver-floor, request: {jax: "0.9.1", driver: "515"},
   refused: {between: [driver, jax], rule: jax-driver-floor, says: 525.60.13}}
- {name: Volta gets the plugin for CUDA 12, rule: jax-gpu, gpus: [Tesla V100-SXM2-32GB], request: {jax: "0.9.1"},
   gets: {environments.0.requirements: ["jax[cuda12]==0.9.1", "nvidia-cudnn-cu12<9.11", numpy]}}
- {name: Turing takes any cuDNN, gpus: [Tesla T4], request: {jax: "0.9.1", driver: "535"},
   gets: {environments.0.requirements: ["jax[cuda12]==0.9.1", numpy]}}
- {name: Kepler is too old for JAX, rule: jax-gpu, os: ubuntu 20.04, gpus: [K80], request: {jax: "0.4.30"},
   refused: {between: [gpus, jax], rule: jax-gpu, says: supports compute capability}}
- {name: JAX follows PyTorch's CUDA, rule: jax-pytorch-cuda-major,
   request: {jax: "0.9.1", pytorch: "2.14.1", pytorch_index: cu126},
   gets: {environments.0.requirements: ["torch==2.14.1", "jax[cuda12]==0.9.1", numpy]}}
- {name: JAX before there was a plugin for PyTorch's CUDA, rule: jax-pytorch-cuda-major,
   request: {jax: "0.5.3", pytorch: "2.14.1", pytorch_index: cu130},
   refused: {between: [environments, jax, pytorch_index], rule: jax-pytorch-cuda-major}}
- {name: PyTorch of before NumPy 2 beside a JAX that takes NumPy 1, rule: jax-pytorch-numpy, gpus: [], python: "3.11",
   request: {jax: "0.4.30", pytorch: "2.2.2"}, gets: {environments.0.requirements: [torch==2.2.2, jax==0.4.30, "numpy<2"]}}
- {name: PyTorch of before NumPy 2 beside a JAX that needs it, rule: jax-pytorch-numpy, gpus: [], python: "3.11",
   request: {jax: "0.9.1", pytorch: "2.2.2"},
   refused: {between: [environments, jax, pytorch], rule: jax-pytorch-numpy, says: "PyTorch 2.2.2 is compiled for NumPy 1"}}
- {name: PyTorch brings the cuDNN that JAX needs, rule: jax-pytorch-pins,
   request: {jax: "0.4.38", pytorch: "2.5.1", pytorch_index: cu124},
   gets: {torch: 2.5.1+cu124}}
- {name: PyTorch pins a cuDNN before the one that JAX needs, rule: jax-pytorch-pins,
   request: {jax: "0.7.2", pytorch: "2.5.1", pytorch_index: cu124},
   refused: {between: [environments, jax, pytorch], rule: jax-pytorch-pins, says: "pins cudnn 9.1.0.70"}}
- {name: JAX beside a PyTorch of another cuDNN, environments: split,
   request: {jax: "0.7.2", pytorch: "2.5.1", pytorch_index: cu124, python: "3.11"},
   gets: {environments.1.requirements.0: "jax[cuda13]==0.7.2"}}
- {name: JAX follows TensorFlow's CUDA, rule: jax-tensorflow-cuda-major, request: {jax: "0.7.2", tensorflow: "2.20.0"},
   gets: {environments.0.frameworks: {jax: 0.7.2, tensorflow: 2.20.0},
   environments.0.requirements.1: "jax[cuda12]==0.7.2"}}
- {name: JAX beside TensorFlow for CUDA 11, rule: jax-tensorflow-cuda-major,
   request: {jax: "0.4.30", tensorflow: "2.14.1"},
   refused: {between: [environments, jax, tensorflow], rule: jax-tensorflow-cuda-major}}
- {name: a JAX that takes TensorFlow's cuDNN, rule: jax-tensorflow-pins, request: {jax: "0.4.35", tensorflow: "2.18.0"},
   gets: {environments.0.requirements.1: "jax[cuda12]==0.4.35"}}
- {name: TensorFlow pins a cuDNN before the one that JAX needs, rule: jax-tensorflow-pins,
   request: {jax: "0.4.30", tensorflow: "2.16.2"},
   refused: {between: [environments, jax, tensorflow], rule: jax-tensorflow-pins, says: cudnn 8.9}}
- {name: TensorFlow pins a compiler before the one that JAX needs, rule: jax-tensorflow-pins,
   request: {jax: "0.4.38", tensorflow: "2.19.0"},
   refused: {between: [environments, jax, tensorflow], rule: jax-tensorflow-pins, says: "requires nvcc ==12.5.82"}}
- {name: one NumPy for JAX and TensorFlow, rule: jax-tensorflow-packages, gpus: [],
   request: {jax: "0.4.30", tensorflow: "2.17.0"},
   gets: {environments.0.frameworks: {jax: 0.4.30, tensorflow: 2.17.0}}}
- {name: no NumPy for JAX and TensorFlow, rule: jax-tensorflow-packages, gpus: [],
   request: {jax: "0.8.0", tensorflow: "2.17.0"},
   refused: {between: [environments, jax, tensorflow], rule: jax-tensorflow-packages, says: numpy}}
- {name: JAX follows the toolkit of the host, rule: jax-cuda-major, request: {jax: "0.9.1", cuda: "12.4", pytorch: none},
   gets: {environments.0.requirements.0: "jax[cuda12]==0.9.1"}}
- {name: JAX follows CuPy's CUDA, rule: jax-cupy-cuda-major,
   request: {jax: "0.9.1", cupy: "13.4.0", pytorch: none, driver: "550"},
   gets: {environments.0.requirements.1: "jax[cuda12]==0.9.1"}}
- {name: JAX beside CuPy for CUDA 11, rule: jax-cupy-cuda-major,
   request: {jax: "0.4.30", cupy: "11.2.0", pytorch: none},
   refused: {between: [cupy, environments, jax], rule: jax-cupy-cuda-major}}
- {name: a GPU that came after JAX, gpus: [B200], request: {jax: "0.5.3"},
   gets: {environments.0.frameworks.jax: 0.5.3},
   warns: "JAX 0.5.3 for CUDA 12 is built with CUDA 12.3, before the generation of B200"}
"""


def old_glibc(subjects):
    row = next(row for row in subjects["distros"]["rows"] if (row["id"], row["version"]) == ("ubuntu", "22.04"))
    row["glibc"] = "2.12"


GPUS_ONLY = False
NEEDS = {}


def new_cudnn(subjects):
    for row in subjects["jax"]["rows"]:
        row["plugins"]["12"]["cudnn"] = ">=9.12,<10.0"


FUTURES = {
    "jax-glibc": (old_glibc, {"request": {"jax": "latest"}}),
    "jax-cudnn-gpu": (new_cudnn, {"gpus": ["Tesla V100-SXM2-32GB"], "request": {"jax": "0.9.1"}}),
}


def published():
    return list(ROWS)


def check(stack, environment, cuda_majors):
    """Where a range has no lower end in another, nothing lies in both."""
    frameworks, wrong = environment["frameworks"], []
    row = ROWS[frameworks["jax"]]
    asked = next(one for one in environment["requirements"] if one.startswith("jax"))
    cuda = asked[len("jax[cuda") : asked.index("]")] if "[" in asked else ""
    if environment["python"] not in row["python"]:
        wrong.append("JAX has no wheel for this Python")
    glibc = checker.DISTROS[stack["os"]["id"], stack["os"]["version"]]["glibc"]
    if cuda and stack["os"]["arch"] not in row["arch"]:
        wrong.append("JAX has no plugin for this architecture")
    if glibc and checker.n(glibc) < checker.n(row["glibc"]):
        wrong.append("glibc too old for JAX")
    if bool(cuda) != bool(stack["gpus"]):
        wrong.append("JAX is not for what the host computes on")
    if checker.n(frameworks.get("pytorch", "99")) < checker.n("2.3") and not overlap(row["numpy"], "==1.26"):
        wrong.append("JAX needs NumPy 2, PyTorch an older one")
    if "tensorflow" in frameworks:
        wrong += check_packages(row, row["plugins"].get(cuda, {}), frameworks["tensorflow"])
    return wrong + (check_plugin(stack, environment, row, cuda, cuda_majors) if cuda else [])


def check_plugin(stack, environment, row, cuda, cuda_majors):
    frameworks, plugin = environment["frameworks"], row["plugins"].get(cuda)
    if plugin is None:
        return ["JAX has no plugin for this CUDA"]
    cuda_majors.add(cuda)
    wrong = checker.check_toolkit_major(stack, cuda, "JAX")
    if checker.n(stack["driver"]["version"]) < checker.n(checker.FLOORS[cuda]):
        wrong.append("driver too old for JAX")
    if any(checker.n(gpu["compute_capability"]) < checker.n(TABLE["min_cc"][cuda]) for gpu in stack["gpus"]):
        wrong.append("JAX does not support this GPU")
    if any(checker.n(gpu["compute_capability"]) < checker.n("7.5") for gpu in stack["gpus"]):
        wrong += checker.check_cudnn_limit(environment, cuda, plugin["cudnn"])
    for library in ("cudnn", "nccl"):
        theirs = [*of_torch(environment, library), *of_tensorflow(frameworks.get("tensorflow"), f"{library}-cu{cuda}")]
        wrong += [f"no {library} for JAX and what is beside it" for one in theirs if not overlap(plugin[library], one)]
    return wrong


def of_torch(environment, library):
    if "pytorch" not in environment["frameworks"] or checker.tag_of(environment) == "cpu":
        return []
    builds = checker.TORCH[environment["frameworks"]["pytorch"]]["builds"]
    pin = next(one for one in builds if one["tag"] == checker.tag_of(environment)).get(library)
    return [f"=={pin}"] if pin else []


def of_tensorflow(release, wheel):
    pins = checker.TENSORFLOW[release].get("pins") or {} if release else {}
    return [pins[wheel] if pins[wheel][0] in "<>" else f"=={pins[wheel]}"] if wheel in pins else []


def check_packages(row, plugin, release):
    known = [limits for first, limits in TABLE["tensorflow"].items() if checker.n(first) <= checker.n(release)]
    limits = known[-1] if known else {}
    ours = {"numpy": row["numpy"], "ml_dtypes": row["ml_dtypes"], "nvcc": plugin.get("nvcc")}
    return [
        f"no {name} for JAX and TensorFlow"
        for name, wanted in ours.items()
        if wanted and limits.get(name) and not overlap(wanted, limits[name])
    ]


def overlap(one, other):
    """Try every version that a range names, and the one below it."""
    named = {part.version for text in (one, other) for part in SpecifierSet(text)}
    return any(SpecifierSet(one).contains(version) and SpecifierSet(other).contains(version) for version in named)
