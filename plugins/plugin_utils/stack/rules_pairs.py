# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about components that share an environment or are built against each other."""

from __future__ import annotations

from collections.abc import Mapping

from .horovod import cxx_standard
from .kinds import Cupy, Driver, GpuModel, Horovod, Library, Python, System, Tensorflow, Toolkit, Torch
from .libraries import SpecifierSet
from .rule import Context, rule
from .versions import at_least, major, minor

# TensorFlow 2.13 asks for typing-extensions < 4.6, PyTorch from 2.2 on for >= 4.8.
OLD_TYPING = ("2.13", "2.2")


def bundled(torch: Torch) -> bool:
    """Return whether the wheel carries its CUDA libraries inside instead of depending on nvidia-* wheels."""
    return torch.variant == "cu118" and not at_least(torch.version, "2.1") or not at_least(torch.version, "1.13")


@rule("pytorch-tensorflow-typing", "pytorch", "tensorflow", sources=("S26",))
def pytorch_tensorflow_typing(context: Context, torch: Torch, tensorflow: Tensorflow) -> str | None:
    old, new = OLD_TYPING
    if minor(tensorflow.version) == old and at_least(torch.version, new):
        return f"TensorFlow {tensorflow.version} needs typing-extensions < 4.6 and PyTorch {torch.version} needs >= 4.8: they cannot share an environment"
    return None


@rule("pytorch-tensorflow-cuda-major", "pytorch", "tensorflow", sources=("S26",))
def pytorch_tensorflow_cuda_major(context: Context, torch: Torch, tensorflow: Tensorflow) -> str | None:
    """One process speaks to one CUDA runtime; and nvidia-*-cu12 and -cu13 wheels own the same files."""
    if torch.variant == "cpu" or context.accelerator != "cuda":
        return None
    ours, theirs = major(torch.row["cuda"]), major(tensorflow.row["cuda"])
    if ours == theirs:
        return None
    if bundled(torch) or not tensorflow.row["and_cuda"]:
        return (
            f"PyTorch {torch.version}+{torch.variant} runs on CUDA {ours} and TensorFlow {tensorflow.version} on CUDA "
            f"{theirs}, which one process cannot do both"
        )
    return (
        f"PyTorch {torch.version}+{torch.variant} brings nvidia-*-cu{ours} wheels and TensorFlow {tensorflow.version} "
        f"nvidia-*-cu{theirs} ones, which overwrite each other's files in one environment"
    )


@rule("pytorch-tensorflow-pins", "pytorch", "tensorflow", sources=("S14", "S26"))
def pytorch_tensorflow_pins(context: Context, torch: Torch, tensorflow: Tensorflow) -> str | None:
    """Both pin NVIDIA's wheels; until 2.19 TensorFlow exactly, so that only the same CUDA release goes together."""
    pins = tensorflow.row["pins"]
    if (
        torch.variant == "cpu"
        or not pins
        or bundled(torch)
        or major(torch.row["cuda"]) != major(tensorflow.row["cuda"])
    ):
        return None
    if not _ranges(pins):
        if minor(torch.row["cuda"]) != tensorflow.row["cuda"]:
            return (
                f"PyTorch {torch.version}+{torch.variant} pins the libraries of CUDA "
                f"{minor(torch.row['cuda'])}, TensorFlow {tensorflow.version} those of {tensorflow.row['cuda']}"
            )
        return None
    for library, have in (("cudnn", torch.row.get("cudnn")), ("nccl", torch.row.get("nccl"))):
        wanted = pins[f"{library}-cu{major(torch.row['cuda'])}"]
        if have and not SpecifierSet(wanted).contains(have):
            return f"PyTorch {torch.version}+{torch.variant} pins {library} {have}, TensorFlow {tensorflow.version} needs {wanted}"
    return None


def _ranges(pins: Mapping[str, str]) -> bool:
    return any(value[0] in "<>" for value in pins.values())


@rule("pytorch-cupy-cuda-major", "pytorch", "cupy", sources=("S19", "S26"))
def pytorch_cupy_cuda_major(context: Context, torch: Torch, cupy: Cupy) -> str | None:
    """In one process both must speak to one CUDA runtime."""
    if torch.variant != "cpu" and major(torch.row["cuda"]) != cupy.row["cuda"]:
        return f"{cupy.variant} is built for CUDA {cupy.row['cuda']}, PyTorch {torch.version}+{torch.variant} for CUDA {minor(torch.row['cuda'])}"
    return None


@rule("tensorflow-cupy-cuda-major", "tensorflow", "cupy", sources=("S16", "S19"))
def tensorflow_cupy_cuda_major(context: Context, tensorflow: Tensorflow, cupy: Cupy) -> str | None:
    if context.accelerator == "cuda" and major(tensorflow.row["cuda"]) != cupy.row["cuda"]:
        return f"{cupy.variant} is built for CUDA {cupy.row['cuda']}, TensorFlow {tensorflow.version} for CUDA {tensorflow.row['cuda']}"
    return None


@rule("tensorflow-cupy-numpy", "tensorflow", "cupy", sources=("S14", "S19"))
def tensorflow_cupy_numpy(context: Context, tensorflow: Tensorflow, cupy: Cupy) -> str | None:
    """CuPy 14 needs NumPy 2, which TensorFlow takes from 2.18 on."""
    if SpecifierSet(cupy.row["numpy"]).contains("1.26") or at_least(tensorflow.version, "2.18"):
        return None
    return f"CuPy {cupy.version} needs NumPy {cupy.row['numpy']}, TensorFlow {tensorflow.version} an older one"


@rule("cupy-python", "cupy", "python", sources=("S19",))
def cupy_python(context: Context, cupy: Cupy, python: Python) -> str | None:
    known = cupy.row["python"]
    if python.version not in known:
        return f"CuPy {cupy.version} has wheels for Python {known[0]} to {known[-1]}, not for {python.version}"
    return None


@rule("cupy-gpu", "cupy", "gpus", sources=("S19",))
def cupy_gpu(context: Context, cupy: Cupy, gpu: GpuModel) -> str | None:
    capability, row = gpu.row["compute_capability"], cupy.row
    low, high = row["min_cc"] or capability, row["max_cc"] or capability
    if not at_least(capability, low) or not at_least(high, capability):
        return f"CuPy {cupy.version} supports compute capability {low} to {high}; {gpu.version} has {capability}"
    return None


@rule("cupy-driver-floor", "cupy", "driver", sources=("S1", "S19"))
def cupy_driver_floor(context: Context, cupy: Cupy, driver: Driver) -> str | None:
    floor = context.tables.major_driver_floor(cupy.row["cuda"])
    if not at_least(driver.version, floor):
        return f"{cupy.variant} (CUDA {cupy.row['cuda']}) needs driver {floor} or newer, not {driver.version}"
    return None


@rule("horovod-pytorch", "horovod", "pytorch", sources=("S13", "S18"))
def horovod_pytorch(context: Context, horovod: Horovod, torch: Torch) -> str | None:
    """PyTorch's headers ask for a newer C++ standard than a Horovod release sets; raised, it compiled so far."""
    below = horovod.row["torch_below"][horovod.row["target"]]
    if at_least(torch.version, below):
        needed, target = (
            cxx_standard(context.tables, torch.version)["standard"],
            "CPUs" if horovod.row["target"] == "cpu" else "GPUs",
        )
        return (
            f"Horovod {horovod.version} for {target} compiles with PyTorch below {below} only, not with {torch.version}, "
            f"whose headers need C++{needed}"
        )
    return None


@rule("horovod-pytorch-compiler", "os", "pytorch", sources=("S12", "H1", "H2"), needs="horovod")
def horovod_pytorch_compiler(context: Context, os: System, torch: Torch) -> str | None:
    """The compiler of the distribution has to know the C++ of PyTorch's headers."""
    needed = cxx_standard(context.tables, torch.version)
    if os.row["gcc"] and not at_least(os.row["gcc"], needed["gcc_min"]):
        return (
            f"Horovod for PyTorch {torch.version} is compiled with C++{needed['standard']}, for which g++ "
            f"{needed['gcc_min']} or newer is needed; {os.version} has {os.row['gcc']}"
        )
    return None


@rule("horovod-python", "horovod", "python", sources=("S18",))
def horovod_python(context: Context, horovod: Horovod, python: Python) -> str | None:
    """Its CMake files import distutils."""
    below = horovod.row["python_below"]
    if at_least(python.version, below):
        return (
            f"Horovod {horovod.version} is compiled with Python's distutils, which Python {below} and newer do not have"
        )
    return None


@rule("horovod-pytorch-build", "horovod", "pytorch", sources=("S18",))
def horovod_pytorch_build(context: Context, horovod: Horovod, torch: Torch) -> str | None:
    """Horovod's own build refuses GPU operations over a PyTorch without CUDA; built for CPUs it would copy every tensor."""
    if horovod.row["target"] == "cuda" and torch.variant == "cpu":
        return (
            f"Horovod {horovod.version} for GPUs is compiled over CUDA, which PyTorch {torch.version}+cpu does not have"
        )
    if horovod.row["target"] == "cpu" and torch.variant != "cpu":
        return f"Horovod {horovod.version} for CPUs would copy every tensor of PyTorch {torch.version}+{torch.variant} to the host"
    return None


@rule("horovod-tensorflow-build", "horovod", "tensorflow", sources=("S18",))
def horovod_tensorflow_build(context: Context, horovod: Horovod, tensorflow: Tensorflow) -> str | None:
    """TensorFlow's wheels compute on the host's GPUs where it has some."""
    if context.accelerator == "cuda" and horovod.row["target"] == "cpu":
        return (
            f"Horovod {horovod.version} for CPUs would copy every tensor of TensorFlow {tensorflow.version} to the host"
        )
    return None


@rule("horovod-tensorflow", "horovod", "tensorflow", sources=("S18",))
def horovod_tensorflow(context: Context, horovod: Horovod, tensorflow: Tensorflow) -> str | None:
    if at_least(tensorflow.version, horovod.row["tensorflow_below"]):
        return (
            f"Horovod {horovod.version} breaks with Keras 3, that is with TensorFlow "
            f"{horovod.row['tensorflow_below']} and newer, not only with {tensorflow.version}"
        )
    return None


@rule("horovod-compiler", "horovod", "os", sources=("S12", "S18"))
def horovod_compiler(context: Context, horovod: Horovod, os: System) -> str | None:
    if os.row["gcc"] and not at_least(os.row["gcc"], horovod.row["gcc_min"]):
        return (
            f"Horovod {horovod.version} needs g++ {horovod.row['gcc_min']} or newer; {os.version} has {os.row['gcc']}"
        )
    return None


@rule("horovod-cuda", "horovod", "cuda", sources=("S18",))
def horovod_cuda(context: Context, horovod: Horovod, cuda: Toolkit) -> str | None:
    """Building Horovod for GPUs takes nvcc and the CUDA headers."""
    if horovod.row["target"] == "cuda" and cuda.absent:
        return f"Horovod {horovod.version} is compiled with the CUDA toolkit, and none is planned"
    return None


@rule("horovod-nccl", "horovod", "nccl", sources=("S18",))
def horovod_nccl(context: Context, horovod: Horovod, nccl: Library) -> str | None:
    if horovod.row["target"] == "cuda" and nccl.absent:
        return f"Horovod {horovod.version} is compiled with NCCL's headers, and no system NCCL is planned"
    return None


@rule("horovod-cuda-pytorch", "cuda", "pytorch", sources=("S18",), needs="horovod")
def horovod_cuda_pytorch(context: Context, cuda: Toolkit, torch: Torch) -> str | None:
    """Horovod's kernels are compiled for the CUDA the framework was built with."""
    if cuda.absent or torch.variant == "cpu" or minor(cuda.version) == minor(torch.row["cuda"]):
        return None
    return f"Horovod must be compiled with CUDA {minor(torch.row['cuda'])}, the one of PyTorch {torch.version}+{torch.variant}, not with {minor(cuda.version)}"


@rule("horovod-cuda-tensorflow", "cuda", "tensorflow", sources=("S18",), needs="horovod")
def horovod_cuda_tensorflow(context: Context, cuda: Toolkit, tensorflow: Tensorflow) -> str | None:
    if cuda.absent or context.accelerator == "cpu" or minor(cuda.version) == tensorflow.row["cuda"]:
        return None
    return f"Horovod must be compiled with CUDA {tensorflow.row['cuda']}, the one of TensorFlow {tensorflow.version}, not with {minor(cuda.version)}"
