# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Pythons, drivers, GPUs and architectures that a build of PyTorch supports."""

from __future__ import annotations

from ...facts import GpuModel, Machine, System
from ...rule import Context, Doubt, Rules
from ...versions import at_least, major
from ...wheels import code_reason, glibc_reason, reach
from ..cudnn import dropped_with
from ..driver.row import Driver
from ..python import Python
from .row import TORCH, Torch

rule = Rules()


def torch_sass(context: Context, torch: Torch) -> list[str] | None:
    """Return the compute capabilities a build holds on an architecture; aarch64 wheels hold fewer."""
    held, on_arm = torch.row.get("sass"), context.tables.beside(TORCH)["aarch64_sass"].get(torch.variant, [])
    if context.arch == "aarch64":
        return on_arm
    return held if context.arch or held is None else [*held, *on_arm]


@rule("pytorch-python", "pytorch", "python", sources=("S13", "S14"))
def pytorch_python(context: Context, torch: Torch, python: Python) -> str | None:
    """A wheel exists for certain Pythons only, whatever Requires-Python says."""
    known = torch.row["release"]["python"]
    if python.version not in known:
        return f"PyTorch {torch.version} has wheels for Python {known[0]} to {known[-1]}, not for {python.version}"
    return None


@rule("pytorch-glibc", "pytorch", "os", sources=("S13", "S12"))
def pytorch_glibc(context: Context, torch: Torch, os: System) -> str | None:
    return glibc_reason(f"PyTorch {torch.version}", torch.row["release"]["glibc"], os)


@rule("pytorch-arch", "pytorch", "arch", sources=("S15", "S13", "O4"))
def pytorch_arch(context: Context, torch: Torch, arch: Machine) -> str | None:
    """CUDA wheels for aarch64 exist for a few builds only."""
    builds = context.tables.beside(TORCH)["aarch64_sass"]
    first = context.tables.beside(TORCH)["plain_aarch64_first"]
    if arch.version == "aarch64" and torch.row["plain"] and not at_least(torch.version, first):
        return f"the general package index has PyTorch with CUDA for aarch64 from {first} on, not {torch.version}"
    if arch.version == "aarch64" and torch.variant != "cpu" and torch.variant not in builds:
        return f"PyTorch {torch.version}+{torch.variant} is not known to exist for aarch64; builds seen there: {', '.join(builds)}"
    return None


@rule("pytorch-driver-floor", "pytorch", "driver", sources=("S1", "S14"))
def pytorch_driver_floor(context: Context, torch: Torch, driver: Driver) -> str | None:
    """Minor-version compatibility: any driver from the floor of the CUDA major on."""
    if torch.variant == "cpu":
        return None
    floor = context.tables.driver_floor(torch.row["cuda"])
    if not at_least(driver.version, floor):
        return f"PyTorch {torch.version}+{torch.variant} (CUDA {torch.row['cuda']}) needs driver {floor} or newer, not {driver.version}"
    return None


@rule("pytorch-gpu", "pytorch", "gpus", sources=("S15", "S33"))
def pytorch_gpu(context: Context, torch: Torch, gpu: GpuModel) -> str | None:
    """The wheel must hold code the GPU can run."""
    if torch.variant == "cpu":
        return None
    name, sass = f"PyTorch {torch.version}+{torch.variant}", torch_sass(context, torch)
    return code_reason(context, name, torch.row["cuda"], gpu, sass, torch.row.get("ptx"))


@rule("pytorch-ptx-driver", "pytorch", "driver", "gpus", sources=("S1", "S2"))
def pytorch_ptx_driver(context: Context, torch: Torch, driver: Driver, gpu: GpuModel) -> str | None:
    """Minor-version compatibility does not cover PTX: compiling it takes the driver of that very toolkit."""
    if torch.variant == "cpu":
        return None
    how = reach(gpu.row["compute_capability"], torch_sass(context, torch), torch.row.get("ptx"))
    bundled = context.tables.bundled_driver(torch.row["cuda"])
    if how == "ptx" and not at_least(driver.version, bundled):
        return f"PyTorch {torch.version}+{torch.variant} reaches {gpu.version} only through PTX, which takes driver {bundled} or newer, not {driver.version}"
    return None


@rule("pytorch-cudnn-gpu", "pytorch", "gpus", sources=("S20", "O3"))
def pytorch_cudnn_gpu(context: Context, torch: Torch, gpu: GpuModel) -> str | None:
    """The wheel pins a cuDNN, which must hold code for the GPU, too."""
    have, cuda = torch.row.get("cudnn"), major(torch.row.get("cuda", ""))
    first = dropped_with(context.tables, cuda, gpu.row["compute_capability"])
    if not first or (have and not at_least(have, first)):
        return None
    if not have:
        return Doubt(
            f"the cuDNN of PyTorch {torch.version}+{torch.variant}, which has code for {gpu.version} before {first} only"
        )
    return f"PyTorch {torch.version}+{torch.variant} pins cuDNN {have}, which has no code for {gpu.version}: support ended before {first}"
