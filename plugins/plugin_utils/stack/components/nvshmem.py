# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVSHMEM's library, as wheels for one major of CUDA each, next to a framework of that major.

It is the library alone, which PyTorch and JAX require and against which kernels are compiled. The Python bindings, nvshmem4py,
require any release of it, so that users who need them add them to an environment; PyTorch and JAX do not require them. NVIDIA names
no driver of its own for it, so that what the framework next to it needs is enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..component import Component, Overview
from ..extensions import gpu_mistake
from ..facts import GpuModel, Machine, System
from ..keys import Key
from ..libraries import SpecifierSet
from ..model import Candidate, Question
from ..nvidia_wheels import WHEELS, WheelRow
from ..rule import Context, Doubt, Rules
from ..tables import Tables
from ..versions import at_least, major, matches, minor, version
from ..wheels import glibc_reason
from .cupy import Cupy
from .jax import Jax
from .pytorch.row import Torch

PACKAGE = "nvidia-nvshmem-cu"


class WheelChoice(WheelRow):
    """A release, with the major of the CUDA that it is built for."""

    cuda: str


Nvshmem = Candidate[WheelChoice]
rule = Rules()


def _rows(tables: Tables) -> Iterator[WheelRow]:
    return (row for row in tables.rows(WHEELS) if row["package"].startswith(PACKAGE))


def _candidates(tables: Tables, question: Question) -> list[Nvshmem]:
    """Return the newest release first, each for the newest CUDA first."""
    constraint = question.constraint("nvshmem")
    found: list[Nvshmem] = [
        Candidate("nvshmem", release, row["package"], {**row, "cuda": row["package"][len(PACKAGE) :]})
        for row in _rows(tables)
        for release in row["releases"]
        if matches(release, constraint)
    ]
    return sorted(found, key=lambda one: (version(one.version), one.row["cuda"]), reverse=True)


def _name(nvshmem: Nvshmem) -> str:
    return f"NVSHMEM {nvshmem.version} for CUDA {nvshmem.row['cuda']}"


def _since(steps: Mapping[str, str], release: str) -> str | None:
    """Return the value for a release, of steps from the oldest on; None before the first."""
    known = [value for first, value in steps.items() if at_least(release, first)]
    return known[-1] if known else None


def pinned(torch: Torch) -> str | None:
    """Return the release that a build of PyTorch pins, or that its neighbours pin where it is not known; None where it pins none."""
    if torch.variant == "cpu" or "nvshmem" not in torch.row:
        return None
    beside = (one.get("nvshmem") for one in torch.row["release"]["builds"])
    return torch.row["nvshmem"] or next(filter(None, beside), None)


@rule("nvshmem-arch", "nvshmem", "arch", sources=("Z1",))
def nvshmem_arch(context: Context, nvshmem: Nvshmem, arch: Machine) -> str | None:
    return None if arch.version in nvshmem.row["platforms"] else f"{_name(nvshmem)} has no wheels for {arch.version}"


@rule("nvshmem-glibc", "nvshmem", "os", sources=("Z1",))
def nvshmem_glibc(context: Context, nvshmem: Nvshmem, os: System) -> str | None:
    return glibc_reason(_name(nvshmem), nvshmem.row["glibc"].get(context.arch or "x86_64"), os)


@rule("nvshmem-gpu", "nvshmem", "gpus", sources=("Z2",))
def nvshmem_gpu(context: Context, nvshmem: Nvshmem, gpu: GpuModel) -> str | None:
    steps = context.tables.beside(WHEELS)["nvshmem_min_cc"][nvshmem.row["cuda"]]
    capability, first = gpu.row["compute_capability"], _since(steps, nvshmem.version)
    if first is None or at_least(capability, first):
        return None
    return f"{_name(nvshmem)} supports compute capability {first} and newer; {gpu.version} has {capability}"


@rule("nvshmem-pytorch-cuda-major", "nvshmem", "pytorch", sources=("Z1", "S14"))
def nvshmem_pytorch_cuda_major(context: Context, nvshmem: Nvshmem, torch: Torch) -> str | None:
    """In one process both must speak to one CUDA runtime."""
    if torch.variant == "cpu" or major(torch.row["cuda"]) == nvshmem.row["cuda"]:
        return None
    return f"{_name(nvshmem)} does not fit PyTorch {torch.version}+{torch.variant}, which runs on CUDA {minor(torch.row['cuda'])}"


@rule("nvshmem-pytorch-pin", "nvshmem", "pytorch", sources=("S14", "P3", "V4"))
def nvshmem_pytorch_pin(context: Context, nvshmem: Nvshmem, torch: Torch) -> str | None:
    """PyTorch requires one release exactly; builds that were not looked at are held to that of their neighbours."""
    pin = pinned(torch)
    if pin in (None, nvshmem.version):
        unseen = torch.variant != "cpu" and torch.row.get("nvshmem", "") is None
        return Doubt(f"the NVSHMEM that PyTorch {torch.version}+{torch.variant} pins") if unseen else None
    return f"PyTorch {torch.version}+{torch.variant} pins NVSHMEM {pin}, not {nvshmem.version}"


@rule("nvshmem-jax-cuda-major", "nvshmem", "jax", sources=("Z1", "J1"))
def nvshmem_jax_cuda_major(context: Context, nvshmem: Nvshmem, jax: Jax) -> str | None:
    if jax.row["cuda"] in ("", nvshmem.row["cuda"]):
        return None
    return f"{_name(nvshmem)} does not fit JAX {jax.version} for CUDA {jax.row['cuda']}"


@rule("nvshmem-jax-requires", "nvshmem", "jax", sources=("Z3",))
def nvshmem_jax_requires(context: Context, nvshmem: Nvshmem, jax: Jax) -> str | None:
    steps = context.tables.beside(WHEELS)["nvshmem_of_jax"].get(jax.row["cuda"], {})
    wanted = _since(steps, jax.version)
    if wanted is None or SpecifierSet(wanted).contains(nvshmem.version):
        return None
    return f"JAX {jax.version} for CUDA {jax.row['cuda']} requires NVSHMEM {wanted}, not {nvshmem.version}"


@rule("nvshmem-cupy-cuda-major", "nvshmem", "cupy", sources=("Z1", "S19"))
def nvshmem_cupy_cuda_major(context: Context, nvshmem: Nvshmem, cupy: Cupy) -> str | None:
    if cupy.row["cuda"] == nvshmem.row["cuda"]:
        return None
    return f"{_name(nvshmem)} does not fit {cupy.variant}"


def _lines(tables: Tables) -> Iterator[tuple[object, ...]]:
    rows = list(_rows(tables))
    days = {release: day for row in rows for release, day in row["releases"].items()}
    for release in sorted(days, key=version, reverse=True):
        majors = (row["package"][len(PACKAGE) :] for row in rows if release in row["releases"])
        yield release, days[release], ", ".join(majors)


NVSHMEM = Component(
    name="nvshmem",
    form=Nvshmem,
    keys=(
        Key(
            name="nvshmem",
            docs=("NVSHMEM as a library next to PyTorch, JAX or CuPy, in the version that PyTorch pins, if any.",),
            sample="latest",
        ),
    ),
    place="framework",
    candidates=_candidates,
    rules=rule,
    tables=(WHEELS,),
    beside=("pytorch", "jax", "cupy"),
    system=("glibc",),
    requirements=lambda tables, question, one, beside: [f"{one.variant}=={one.version}"],
    module="nvidia.nvshmem",
    size={"cuda": 500, "cpu": 500},  # 3.8.0: 401 MiB for CUDA 12, 257 MiB for CUDA 13, and the headers of CCCL
    overview=Overview("NVSHMEM", ("release", "released", "CUDA"), _lines),
    mistake=lambda tables, question: gpu_mistake("nvshmem", question),
)
