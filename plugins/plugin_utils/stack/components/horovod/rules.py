# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The frameworks, compilers and libraries that Horovod can be compiled for."""

from __future__ import annotations

from ...facts import Compiler, has_compiler
from ...rule import Context, Rules
from ...versions import at_least, minor
from ..cuda import Toolkit, compiler_reason
from ..nccl import Nccl
from ..python import Python
from ..pytorch.row import Torch
from ..tensorflow import Tensorflow
from .build import cxx_standard
from .row import HOROVOD_ROWS, Horovod

rule = Rules()


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


@rule("horovod-pytorch-tensorflow", "pytorch", "tensorflow", sources=("H1",), needs="horovod")
def horovod_pytorch_tensorflow(context: Context, torch: Torch, tensorflow: Tensorflow) -> str | None:
    """For both at once, code for GPUs was compiled with the C++ standard that a Horovod release sets only."""
    below = max(row["torch_below_with_tensorflow"] for row in context.tables.rows(HOROVOD_ROWS))
    if context.accelerator == "cpu" or torch.variant == "cpu" or not at_least(torch.version, below):
        return None
    return (
        f"Horovod for GPUs was compiled for PyTorch below {below} and TensorFlow together, not for {torch.version} next to TensorFlow "
        f"{tensorflow.version}"
    )


@rule("horovod-pytorch-compiler", "compiler", "pytorch", sources=("S12", "H1", "H2"), needs="horovod")
def horovod_pytorch_compiler(context: Context, compiler: Compiler, torch: Torch) -> str | None:
    """The compiler has to know the C++ of PyTorch's headers."""
    needed = cxx_standard(context.tables, torch.version)
    if not at_least(compiler.version, needed["gcc_min"]):
        return (
            f"Horovod for PyTorch {torch.version} is compiled with C++{needed['standard']}, for which g++ "
            f"{needed['gcc_min']} or newer is needed; {has_compiler(compiler)}"
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
        return f"Horovod {horovod.version} for GPUs is compiled against CUDA, which PyTorch {torch.version}+cpu does not have"
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
            f"Horovod {horovod.version} breaks with Keras 3, that is, with TensorFlow "
            f"{horovod.row['tensorflow_below']} and newer, not only with {tensorflow.version}"
        )
    return None


@rule("horovod-compiler", "horovod", "compiler", sources=("S12", "S18", "H5"))
def horovod_compiler(context: Context, horovod: Horovod, compiler: Compiler) -> str | None:
    """Older compilers lack C++ that it needs, newer ones headers that it takes for granted."""
    first, last = horovod.row["gcc_min"], horovod.row["gcc_max"]
    if not at_least(compiler.version, first):
        return f"Horovod {horovod.version} needs g++ {first} or newer; {has_compiler(compiler)}"
    if not at_least(last, compiler.version):
        return f"Horovod {horovod.version} compiles with g++ up to {last}; {has_compiler(compiler)}"
    return None


@rule("horovod-cuda-compiler", "cuda", "compiler", sources=("H3", "H4"), needs="horovod")
def horovod_cuda_compiler(context: Context, cuda: Toolkit, compiler: Compiler) -> str | None:
    """Its kernels are compiled by nvcc with the host's compiler."""
    if context.accelerator == "cpu" or cuda.absent:
        return None
    return compiler_reason(cuda, compiler)


@rule("horovod-cuda", "horovod", "cuda", sources=("S18",))
def horovod_cuda(context: Context, horovod: Horovod, cuda: Toolkit) -> str | None:
    """Building Horovod for GPUs takes nvcc and the CUDA headers."""
    if horovod.row["target"] == "cuda" and cuda.absent:
        return f"Horovod {horovod.version} is compiled with the CUDA toolkit, and none is planned"
    return None


@rule("horovod-nccl", "horovod", "nccl", sources=("S18",))
def horovod_nccl(context: Context, horovod: Horovod, nccl: Nccl) -> str | None:
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
