# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TensorFlow, which until 2.13 takes CUDA and cuDNN from the host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypedDict

from ..component import NUMPY_1, Beside, Component, Overview, first_to_last
from ..facts import GpuModel, Machine, System
from ..keys import Key
from ..model import Candidate, Question
from ..rule import Context, Rules
from ..tables import Subject, Tables
from ..versions import at_least, major, matches, minor
from ..wheels import code_reason, glibc_reason, reach
from .cuda import Toolkit
from .cudnn import Cudnn, wheel_limits
from .driver.row import Driver
from .python import Python
from .pytorch.row import LIBRARIES, Torch, bundled, pins_reason

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class TensorflowRow(TypedDict):
    releases: list[str]
    python: list[str]
    glibc: str
    cuda: str
    cudnn: str
    and_cuda: bool
    pins: NotRequired[dict[str, str]]
    sass: list[str] | None
    ptx: str | None


class TensorflowTable(TypedDict):
    numpy_bound_first: str


TENSORFLOW_ROWS = Subject("tensorflow", TensorflowRow, TensorflowTable)


Tensorflow = Candidate[TensorflowRow]
# TensorFlow 2.13 asks for typing-extensions < 4.6, PyTorch from 2.2 on for >= 4.8.
OLD_TYPING = ("2.13", "2.2")
rule = Rules()


def _tensorflow(tables: Tables, question: Question) -> list[Tensorflow]:
    constraint = question.constraint("tensorflow")
    return [
        Candidate("tensorflow", release, row=row)
        for row in reversed(tables.rows(TENSORFLOW_ROWS))
        for release in reversed(row["releases"])
        if matches(release, constraint)
    ]


@rule("tensorflow-glibc", "tensorflow", "os", sources=("S14", "S12"))
def tensorflow_glibc(context: Context, tensorflow: Tensorflow, os: System) -> str | None:
    return glibc_reason(f"TensorFlow {tensorflow.version}", tensorflow.row["glibc"], os)


@rule("tensorflow-arch", "tensorflow", "arch", sources=("S39",))
def tensorflow_arch(context: Context, tensorflow: Tensorflow, arch: Machine) -> str | None:
    """The wheels for aarch64 are built by others, for the CPU alone."""
    if arch.version == "aarch64" and context.accelerator == "cuda":
        return f"TensorFlow {tensorflow.version} has wheels without CUDA only for aarch64"
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
    capability, row, name = gpu.row["compute_capability"], tensorflow.row, f"TensorFlow {tensorflow.version}"
    if major(capability) == "12" and reach(capability, row["sass"], row["ptx"]):
        return f"{name} fails on {gpu.version}: its PTX does not compile for compute capability {capability}"
    return code_reason(context, name, row["cuda"], gpu, row["sass"], row["ptx"])


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
            f"{theirs}, and one process cannot do both"
        )
    return (
        f"PyTorch {torch.version}+{torch.variant} brings nvidia-*-cu{ours} wheels and TensorFlow {tensorflow.version} "
        f"nvidia-*-cu{theirs} ones, which overwrite each other's files in one environment"
    )


@rule("pytorch-tensorflow-pins", "pytorch", "tensorflow", sources=("S14", "S26"))
def pytorch_tensorflow_pins(context: Context, torch: Torch, tensorflow: Tensorflow) -> str | None:
    """Both pin NVIDIA's wheels; until 2.19 TensorFlow exactly, so that only the same CUDA release goes together."""
    pins = tensorflow.row.get("pins")
    if (
        torch.variant == "cpu"
        or not pins
        or bundled(torch)
        or major(torch.row["cuda"]) != major(tensorflow.row["cuda"])
    ):
        return None
    if not _ranges(pins) and minor(torch.row["cuda"]) != tensorflow.row["cuda"]:
        return (
            f"PyTorch {torch.version}+{torch.variant} pins the libraries of CUDA "
            f"{minor(torch.row['cuda'])}, TensorFlow {tensorflow.version} those of {tensorflow.row['cuda']}"
        )
    found = {library: pins[f"{library}-cu{major(torch.row['cuda'])}"] for library in LIBRARIES}
    wanted = {library: pin if pin[0] in "<>" else f"=={pin}" for library, pin in found.items()}
    return pins_reason(torch, wanted, f"TensorFlow {tensorflow.version}")


def _ranges(pins: Mapping[str, str]) -> bool:
    return any(value[0] in "<>" for value in pins.values())


def _reason(tables: Tables, question: Question, one: Tensorflow) -> str:
    libraries = (
        "brings its CUDA libraries as wheels" if one.row["and_cuda"] else f"uses the host's CUDA {one.row['cuda']}"
    )
    return f"{question.asked('tensorflow')}; {libraries if question.accelerator == 'cuda' else 'on the CPU'}"


KEY = Key(name="tensorflow", docs=("TensorFlow.",), sample='"2.12.0"')


def _requirements(tables: Tables, question: Question, one: Tensorflow, beside: Beside) -> list[str]:
    numpy = [] if at_least(one.version, tables.beside(TENSORFLOW_ROWS)["numpy_bound_first"]) else [NUMPY_1]
    if not one.row["and_cuda"] or question.accelerator != "cuda":
        return [f"tensorflow=={one.version}", *numpy]
    pins, cuda = one.row["pins"], major(one.row["cuda"])
    limits = wheel_limits(tables, question, cuda) if pins and _ranges(pins) else []
    return [f"tensorflow[and-cuda]=={one.version}", *limits]


def _lines(tables: Tables) -> Iterator[tuple[object, ...]]:
    for row in reversed(tables.rows(TENSORFLOW_ROWS)):
        yield ", ".join(row["releases"]), first_to_last(row["python"]), row["cuda"], row["cudnn"]


TENSORFLOW = Component(
    name="tensorflow",
    form=Tensorflow,
    keys=(KEY,),
    place="framework",
    candidates=_tensorflow,
    rules=rule,
    tables=(TENSORFLOW_ROWS,),
    uses=("cuda", "cudnn"),
    reason=_reason,
    system=("glibc",),
    requirements=_requirements,
    module="tensorflow",
    size={"cuda": 6000, "cpu": 6000},
    overview=Overview("TensorFlow", ("release", "Python", "CUDA", "cuDNN"), _lines),
)
