# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cases of NVSHMEM, and what is wrong with a stack that has it: read from its table, without the resolver."""

from __future__ import annotations

import checker
from packaging.specifiers import SpecifierSet

TABLE = checker.table("nvidia_wheels")


def rows_of(subjects):
    """Requirement -> the row of its wheels."""
    rows = [row for row in subjects["nvidia_wheels"]["rows"] if "nvshmem" in row["package"]]
    return {f"{row['package']}=={release}": row for row in rows for release in row["releases"]}


ROWS = rows_of({"nvidia_wheels": TABLE})
LOOSE = ["latest", "3.4", ">=3.5", "<3.4"]
CASES = """
- {name: the NVSHMEM that PyTorch pins, rule: nvshmem-pytorch-pin, request: {nvshmem: latest, pytorch: "2.14.1", pytorch_index: cu130},
   gets: {environments.0.requirements: [torch==2.14.1, nvidia-nvshmem-cu13==3.4.5, numpy]}}
- {name: an NVSHMEM brings a PyTorch that pins it, request: {nvshmem: "3.3.20", pytorch: ">=2.9"},
   gets: {environments.0.frameworks: {pytorch: 2.9.1, nvshmem: 3.3.20}}}
- {name: another NVSHMEM than PyTorch's, rule: nvshmem-pytorch-pin, request: {nvshmem: "3.8", pytorch: "2.11.0"},
   refused: {between: [nvshmem, pytorch], rule: nvshmem-pytorch-pin, says: "pins NVSHMEM 3.4.5, not 3.8.0", advises: "set nvshmem to 3.4.5"}}
- {name: a build whose pin nobody read, request: {nvshmem: latest, pytorch: "2.14.1", pytorch_index: cu126},
   gets: {environments.0.requirements.1: nvidia-nvshmem-cu12==3.4.5},
   warns: "not verified: the NVSHMEM that PyTorch 2.14.1+cu126 pins"}
- {name: a PyTorch that pins none, rule: nvshmem-pytorch-cuda-major, request: {nvshmem: "3.8", pytorch: "2.8.0"},
   gets: {environments.0.requirements.1: nvidia-nvshmem-cu12==3.8.0}}
- {name: NVSHMEM for CUDA 12 only, rule: nvshmem-pytorch-cuda-major, request: {nvshmem: "3.3.9", pytorch_index: cu118},
   refused: {between: [nvshmem, pytorch_index], rule: nvshmem-pytorch-cuda-major, says: "NVSHMEM 3.3.9 for CUDA 12 does not fit"}}
- {name: NVSHMEM on processors, gpus: [], request: {nvshmem: latest}, error: nvshmem requires a GPU}
- {name: NVSHMEM on Volta, rule: nvshmem-gpu, gpus: [Tesla V100-SXM2-32GB], request: {nvshmem: "3.4.5", cupy: "13.6.0", pytorch: none},
   gets: {environments.0.requirements.1: nvidia-nvshmem-cu12==3.4.5}}
- {name: NVSHMEM on Pascal, rule: nvshmem-gpu, gpus: [Tesla P100-SXM2-16GB], request: {nvshmem: "3.4.5"},
   refused: {between: [gpus, nvshmem], rule: nvshmem-gpu, says: "supports compute capability 7.0 and newer"}}
- {name: NVSHMEM beside CuPy, rule: nvshmem-cupy-cuda-major, request: {nvshmem: "3.8", cupy: "14", pytorch: none},
   gets: {environments.0.requirements.1: nvidia-nvshmem-cu13==3.8.0}}
- {name: no NVSHMEM for CuPy's CUDA, rule: nvshmem-cupy-cuda-major, request: {nvshmem: "3.8", cupy: "11.2.0", pytorch: none},
   refused: {between: [cupy, nvshmem], rule: nvshmem-cupy-cuda-major, says: "NVSHMEM 3.8.0"}}
- {name: NVSHMEM beside JAX, rule: nvshmem-jax-cuda-major, request: {nvshmem: "3.8", jax: "0.9.1", pytorch: none},
   gets: {environments.0.requirements.1: nvidia-nvshmem-cu13==3.8.0}}
- {name: the NVSHMEM for JAX's only CUDA, rule: nvshmem-jax-cuda-major, request: {nvshmem: "3.4.5", jax: "0.5.3", pytorch: none},
   gets: {environments.0.requirements.1: nvidia-nvshmem-cu12==3.4.5}}
- {name: an NVSHMEM that JAX takes, rule: nvshmem-jax-requires, request: {nvshmem: "3.2.5", jax: "0.9.1", pytorch: none},
   gets: {environments.0.requirements.0: "jax[cuda12]==0.9.1"}}
- {name: an NVSHMEM before the one that JAX needs, rule: nvshmem-jax-requires, request: {nvshmem: "3.1.7", jax: "0.9.1", pytorch: none},
   refused: {between: [jax, nvshmem], rule: nvshmem-jax-requires, says: "requires NVSHMEM >=3.2.5, not 3.1.7"}}
- {name: NVSHMEM on aarch64, rule: nvshmem-arch, arch: aarch64, gpus: [GH200], request: {nvshmem: latest},
   gets: {environments.0.frameworks.nvshmem: 3.4.5}}
- {name: NVSHMEM with the glibc of a system, rule: nvshmem-glibc, request: {nvshmem: "3.4.5"}, gets: {environments.0.frameworks.nvshmem: 3.4.5}}
"""
GPUS_ONLY = True
NEEDS = {}


def old_glibc(subjects):
    row = next(row for row in subjects["distros"]["rows"] if (row["id"], row["version"]) == ("ubuntu", "22.04"))
    row["glibc"] = "2.12"
    for torch in subjects["torch"]["rows"]:
        torch["glibc"] = "2.12"


def old_wheels(subjects):
    for row in subjects["nvidia_wheels"]["rows"]:
        row["platforms"].pop("aarch64", None)


def newer_cuda(subjects):
    table = subjects["nvidia_wheels"]
    table["rows"] = [row for row in table["rows"] if not row["package"].endswith("12")]


FUTURES = {
    "nvshmem-jax-cuda-major": (newer_cuda, {"request": {"nvshmem": "3.4.5", "jax": "0.5.3", "pytorch": "none"}}),
    "nvshmem-glibc": (old_glibc, {"request": {"nvshmem": "3.4.5"}}),
    "nvshmem-arch": (old_wheels, {"arch": "aarch64", "gpus": ["GH200"], "request": {"nvshmem": "3.4.5"}}),
}


def published():
    return list(dict.fromkeys(one.partition("==")[2] for one in ROWS))


def check(stack, environment, cuda_majors):
    release, n = environment["frameworks"]["nvshmem"], checker.n
    asked = [one for one in environment["requirements"] if one in ROWS and one.endswith(f"=={release}")]
    if len(asked) != 1:
        return ["nothing installs NVSHMEM, or more than one package does"]
    row, cuda, arch, wrong = ROWS[asked[0]], asked[0].partition("==")[0][-2:], stack["os"]["arch"], []
    if stack["gpus"]:
        cuda_majors.add(cuda)
    glibc = checker.DISTROS[stack["os"]["id"], stack["os"]["version"]]["glibc"]
    if arch not in row["platforms"]:
        wrong.append("NVSHMEM has no wheels for this architecture")
    if glibc and n(glibc) < n(row["glibc"].get(arch, "0")):
        wrong.append("glibc too old for NVSHMEM")
    first = last_step(TABLE["nvshmem_min_cc"][cuda], release)
    if any(n(gpu["compute_capability"]) < n(first) for gpu in stack["gpus"]):
        wrong.append("NVSHMEM does not support this GPU")
    return wrong + check_neighbours(environment, release)


def check_neighbours(environment, release):
    """PyTorch pins one release in the builds that are known; JAX's plugins have a range."""
    frameworks, wrong = environment["frameworks"], []
    if "pytorch" in frameworks:
        builds = checker.TORCH[frameworks["pytorch"]]["builds"]
        build = next(one for one in builds if one["tag"] == checker.tag_of(environment))
        if (build.get("nvshmem") or release) != release:
            wrong.append("PyTorch pins another NVSHMEM")
    plugin = next(
        (one[len("jax[cuda") :][:2] for one in environment["requirements"] if one.startswith("jax[cuda")), None
    )
    wanted = last_step(TABLE["nvshmem_of_jax"].get(plugin, {}), frameworks.get("jax", "0"))
    if wanted != "0" and not SpecifierSet(wanted).contains(release):
        wrong.append("JAX requires another NVSHMEM")
    return wrong


def last_step(steps, release):
    return [value for first, value in {"0": "0", **steps}.items() if checker.n(first) <= checker.n(release)][-1]
