# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about PyTorch, TensorFlow, CuPy and Horovod: against the host, and against each other."""

from __future__ import annotations

from typing import Literal

from .kinds import Cudnn, Cupy, Driver, GpuModel, Machine, Python, System, Tensorflow, Toolkit, Torch
from .rule import Context, rule
from .versions import at_least, major, minor


def reach(capability: str, sass: list[str] | None, ptx: str | None) -> Literal["sass", "ptx"] | None:
    """Return how code reaches a GPU: 'sass' (same major, not above the GPU's minor), 'ptx' (any lower), or not at all.

    None in the tables means the list is not known; then nothing is claimed and 'sass' is returned.
    """
    if sass is None and ptx is None:
        return "sass"
    if any(major(one) == major(capability) and at_least(capability, one) for one in sass or ()):
        return "sass"
    return "ptx" if ptx and at_least(capability, ptx) else None


def torch_sass(context: Context, torch: Torch) -> list[str] | None:
    """Return the compute capabilities a build holds on an architecture; aarch64 wheels hold fewer."""
    held, on_arm = torch.row.get("sass"), context.tables.subjects["torch"]["aarch64_sass"].get(torch.variant, [])
    if context.arch == "aarch64":
        return on_arm
    return held if context.arch or held is None else [*held, *on_arm]


def _too_early(context: Context, name: str, cuda: str, gpu: GpuModel, sass: list[str] | None) -> str | None:
    """Where nobody looked which code a wheel holds: a compiler knows no GPU whose generation came after it."""
    first = context.tables.first_cuda(gpu.row["compute_capability"])
    if sass is not None or at_least(minor(cuda), first):
        return None
    return f"{name} is built with CUDA {minor(cuda)}, and the generation of {gpu.version} begins with CUDA {first}"


@rule("pytorch-python", "pytorch", "python", sources=("S13", "S14"))
def pytorch_python(context: Context, torch: Torch, python: Python) -> str | None:
    """A wheel exists for certain Pythons only, whatever Requires-Python says."""
    known = torch.row["release"]["python"]
    if python.version not in known:
        return f"PyTorch {torch.version} has wheels for Python {known[0]} to {known[-1]}, not for {python.version}"
    return None


@rule("pytorch-glibc", "pytorch", "os", sources=("S13", "S12"))
def pytorch_glibc(context: Context, torch: Torch, os: System) -> str | None:
    return _glibc(f"PyTorch {torch.version}", torch.row["release"]["glibc"], os)


@rule("tensorflow-glibc", "tensorflow", "os", sources=("S14", "S12"))
def tensorflow_glibc(context: Context, tensorflow: Tensorflow, os: System) -> str | None:
    return _glibc(f"TensorFlow {tensorflow.version}", tensorflow.row["glibc"], os)


def _glibc(name: str, floor: str | None, os: System) -> str | None:
    have = os.row["glibc"]
    if have and floor and not at_least(have, floor):
        return f"{name} needs glibc {floor} or newer; {os.version} has {have}"
    return None


@rule("pytorch-arch", "pytorch", "arch", sources=("S15",))
def pytorch_arch(context: Context, torch: Torch, arch: Machine) -> str | None:
    """CUDA wheels for aarch64 exist for a few builds only."""
    builds = context.tables.subjects["torch"]["aarch64_sass"]
    first = context.tables.subjects["torch"]["plain_aarch64_first"]
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
    capability = gpu.row["compute_capability"]
    if reach(capability, torch_sass(context, torch), torch.row.get("ptx")) is None:
        return (
            f"PyTorch {torch.version}+{torch.variant} holds no code for {gpu.version} (compute capability {capability})"
        )
    sass = torch_sass(context, torch)
    return _too_early(context, f"PyTorch {torch.version}+{torch.variant}", torch.row["cuda"], gpu, sass)


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


@rule("tensorflow-arch", "tensorflow", "arch", sources=("S39",))
def tensorflow_arch(context: Context, tensorflow: Tensorflow, arch: Machine) -> str | None:
    """The wheels for aarch64 are built by others, for the CPU alone."""
    if arch.version == "aarch64" and context.accelerator == "cuda":
        return f"TensorFlow {tensorflow.version} has wheels without CUDA only for aarch64"
    return None


@rule("cupy-arch", "cupy", "arch", sources=("P1",))
def cupy_arch(context: Context, cupy: Cupy, arch: Machine) -> str | None:
    """The package index has wheels for aarch64 from the twelfth series on."""
    if arch.version == "aarch64" and not at_least(cupy.version, "12.0"):
        return f"CuPy {cupy.version} has no wheels for aarch64, where 12.0 is the first that has"
    return None


@rule("tensorflow-python", "tensorflow", "python", sources=("S14", "S16"))
def tensorflow_python(context: Context, tensorflow: Tensorflow, python: Python) -> str | None:
    known = tensorflow.row["python"]
    if python.version not in known:
        return (
            f"TensorFlow {tensorflow.version} has wheels for Python {known[0]} to {known[-1]}, not for {python.version}"
        )
    return None


@rule("tensorflow-driver-floor", "tensorflow", "driver", sources=("S1", "S16"))
def tensorflow_driver_floor(context: Context, tensorflow: Tensorflow, driver: Driver) -> str | None:
    if context.accelerator == "cpu":
        return None
    floor = context.tables.driver_floor(tensorflow.row["cuda"])
    if not at_least(driver.version, floor):
        return f"TensorFlow {tensorflow.version} (CUDA {tensorflow.row['cuda']}) needs driver {floor} or newer, not {driver.version}"
    return None


@rule("tensorflow-gpu", "tensorflow", "gpus", sources=("S17", "S34"))
def tensorflow_gpu(context: Context, tensorflow: Tensorflow, gpu: GpuModel) -> str | None:
    """The wheel must hold code the GPU can run; on compute capability 12.0 published wheels were seen to fail."""
    capability, row = gpu.row["compute_capability"], tensorflow.row
    if reach(capability, row["sass"], row["ptx"]) is None:
        return f"TensorFlow {tensorflow.version} holds no code for {gpu.version} (compute capability {capability})"
    if major(capability) == "12":
        return f"TensorFlow {tensorflow.version} fails on {gpu.version}: its PTX does not compile for compute capability {capability}"
    return _too_early(context, f"TensorFlow {tensorflow.version}", row["cuda"], gpu, row["sass"])


@rule("tensorflow-ptx-driver", "tensorflow", "driver", "gpus", sources=("S1", "S34"))
def tensorflow_ptx_driver(context: Context, tensorflow: Tensorflow, driver: Driver, gpu: GpuModel) -> str | None:
    row = tensorflow.row
    bundled = context.tables.bundled_driver(row["cuda"])
    if reach(gpu.row["compute_capability"], row["sass"], row["ptx"]) == "ptx" and not at_least(driver.version, bundled):
        return f"TensorFlow {tensorflow.version} reaches {gpu.version} only through PTX, which takes driver {bundled} or newer, not {driver.version}"
    return None


@rule("tensorflow-cuda", "tensorflow", "cuda", sources=("S16",))
def tensorflow_cuda(context: Context, tensorflow: Tensorflow, cuda: Toolkit) -> str | None:
    """Before 2.14 TensorFlow uses the CUDA of the host, and only the one it was built with."""
    row = tensorflow.row
    if context.accelerator == "cpu" or row["and_cuda"] or (not cuda.absent and minor(cuda.version) == row["cuda"]):
        return None
    have = "none" if cuda.absent else minor(cuda.version)
    return (
        f"TensorFlow {tensorflow.version} is built for CUDA {row['cuda']} with cuDNN "
        f"{row['cudnn']} and takes them from the host, where CUDA {have} is planned"
    )


@rule("tensorflow-cudnn", "tensorflow", "cudnn", sources=("S16",))
def tensorflow_cudnn(context: Context, tensorflow: Tensorflow, cudnn: Cudnn) -> str | None:
    """cuDNN of the same major, at least the minor TensorFlow was built with."""
    row = tensorflow.row
    if context.accelerator == "cpu" or row["and_cuda"]:
        return None
    if not cudnn.absent and major(cudnn.version) == major(row["cudnn"]) and at_least(cudnn.version, row["cudnn"]):
        return None
    have = "no cuDNN" if cudnn.absent else f"cuDNN {cudnn.version}"
    return f"TensorFlow {tensorflow.version} needs cuDNN {row['cudnn']} or a newer {major(row['cudnn'])}.x on the host, where {have} is planned"
