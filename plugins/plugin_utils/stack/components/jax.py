# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JAX, which takes CUDA from a plugin for one major of it and from NVIDIA's wheels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypedDict

from ..component import Beside, Component, Overview, first_to_last
from ..facts import GpuModel, Machine, System
from ..keys import Key
from ..model import Candidate, Question
from ..rows import Arch
from ..rule import Context, Doubt, Rules
from ..tables import Subject, Tables
from ..versions import at_least, major, matches, meet, minor
from ..wheels import glibc_reason
from .cuda import Toolkit
from .cudnn import dropped_with, wheel_limits
from .cupy import Cupy
from .driver.row import Driver
from .python import Python
from .pytorch.row import LIBRARIES, Torch, numpy_reason, pins_reason
from .tensorflow import Tensorflow

CPU = "cpu"


class JaxRow(TypedDict):
    """arch: that all plugins are for. plugins: by CUDA major, what a plugin requires of NVIDIA's wheels."""

    version: str
    released: str
    python: list[str]
    glibc: str
    arch: list[Arch]
    plugins: dict[str, dict[str, str]]
    numpy: str
    ml_dtypes: str
    read: str
    sources: list[str]


class JaxTable(TypedDict):
    sources: dict[str, str]
    min_cc: dict[str, str]
    built: dict[str, dict[str, str]]
    tensorflow: dict[str, dict[str, str | None]]


class JaxChoice(TypedDict):
    """A release with one of its plugins; cuda: the major it is for, empty where JAX computes on processors."""

    release: JaxRow
    cuda: str


Jax = Candidate[JaxChoice]
JAX_ROWS = Subject("jax", JaxRow, JaxTable)
rule = Rules()


def _candidates(tables: Tables, question: Question) -> list[Jax]:
    """Releases, the newest first, each with the plugin for the newest CUDA first."""
    constraint = question.constraint("jax")
    found: list[Jax] = []
    for row in reversed(tables.rows(JAX_ROWS)):
        majors = sorted(row["plugins"], key=int, reverse=True) if question.accelerator == "cuda" else [""]
        if matches(row["version"], constraint):
            found += [
                Candidate("jax", row["version"], f"cuda{one}" if one else CPU, {"release": row, "cuda": one})
                for one in majors
            ]
    return found


def _name(jax: Jax) -> str:
    return f"JAX {jax.version}" + (f" for CUDA {jax.row['cuda']}" if jax.row["cuda"] else "")


def _required(jax: Jax, library: str) -> str:
    """Return the version of a library that the plugin requires."""
    return jax.row["release"]["plugins"][jax.row["cuda"]][library]


def _of_tensorflow(context: Context, tensorflow: Tensorflow, package: str) -> str | None:
    """Return the version of a package that TensorFlow requires; None where it requires nothing."""
    steps = context.tables.beside(JAX_ROWS)["tensorflow"]
    known = [step for first, step in steps.items() if at_least(tensorflow.version, first)]
    return known[-1][package] if known else None


def _oldest(jax: Jax) -> str:
    """Return the oldest CUDA that its release has a plugin for, which asks least."""
    return min(jax.row["release"]["plugins"], key=int)


@rule("jax-python", "jax", "python", sources=("J1",))
def jax_python(context: Context, jax: Jax, python: Python) -> str | None:
    known = jax.row["release"]["python"]
    if python.version not in known:
        return f"JAX {jax.version} has wheels for Python {known[0]} to {known[-1]}, not for {python.version}"
    return None


@rule("jax-glibc", "jax", "os", sources=("J1",))
def jax_glibc(context: Context, jax: Jax, os: System) -> str | None:
    return glibc_reason(f"JAX {jax.version}", jax.row["release"]["glibc"], os)


@rule("jax-arch", "jax", "arch", sources=("J1",))
def jax_arch(context: Context, jax: Jax, arch: Machine) -> str | None:
    if jax.row["cuda"] and arch.version not in jax.row["release"]["arch"]:
        return f"{_name(jax)} has no wheels for {arch.version}"
    return None


@rule("jax-driver-floor", "jax", "driver", sources=("S1", "J2"))
def jax_driver_floor(context: Context, jax: Jax, driver: Driver) -> str | None:
    """Minor-version compatibility: any driver from the floor of the CUDA major on, as JAX's documentation asks."""
    floors = {cuda: context.tables.major_driver_floor(cuda) for cuda in jax.row["release"]["plugins"]}
    if not jax.row["cuda"] or at_least(driver.version, floors[jax.row["cuda"]]):
        return None
    able = any(at_least(driver.version, floor) for floor in floors.values())
    name, floor = (_name(jax), floors[jax.row["cuda"]]) if able else (f"JAX {jax.version}", floors[_oldest(jax)])
    return f"{name} needs driver {floor} or newer, not {driver.version}"


@rule("jax-gpu", "jax", "gpus", sources=("J2",))
def jax_gpu(context: Context, jax: Jax, gpu: GpuModel) -> str | None:
    capability, first = gpu.row["compute_capability"], context.tables.beside(JAX_ROWS)["min_cc"]
    if not jax.row["cuda"] or at_least(capability, first[jax.row["cuda"]]):
        return None
    able = any(at_least(capability, first[cuda]) for cuda in jax.row["release"]["plugins"])
    name, low = (_name(jax), first[jax.row["cuda"]]) if able else (f"JAX {jax.version}", first[_oldest(jax)])
    return f"{name} supports compute capability {low} and newer; {gpu.version} has {capability}"


@rule("jax-cudnn-gpu", "jax", "gpus", sources=("S20", "J1"))
def jax_cudnn_gpu(context: Context, jax: Jax, gpu: GpuModel) -> str | None:
    """The plugin requires a range of cuDNN, in which one must hold code for the GPU."""
    first = dropped_with(context.tables, jax.row["cuda"], gpu.row["compute_capability"])
    if not first or meet(_required(jax, "cudnn"), f"<{first}"):
        return None
    return f"{_name(jax)} requires cuDNN {_required(jax, 'cudnn')}, which has no code for {gpu.version}: support ended before {first}"


@rule("jax-pytorch-cuda-major", "jax", "pytorch", sources=("S26", "J1"))
def jax_pytorch_cuda_major(context: Context, jax: Jax, torch: Torch) -> str | None:
    """In one process both must speak to one CUDA runtime."""
    if torch.variant == "cpu" or not jax.row["cuda"] or major(torch.row["cuda"]) == jax.row["cuda"]:
        return None
    return f"{_name(jax)} does not share a process with PyTorch {torch.version}+{torch.variant}, which runs on CUDA {minor(torch.row['cuda'])}"


@rule("jax-pytorch-pins", "jax", "pytorch", sources=("S14", "J1"))
def jax_pytorch_pins(context: Context, jax: Jax, torch: Torch) -> str | None:
    """PyTorch pins NVIDIA's wheels to versions, of which JAX needs newer ones."""
    if torch.variant == "cpu" or not jax.row["cuda"] or major(torch.row["cuda"]) != jax.row["cuda"]:
        return None
    return pins_reason(torch, {library: _required(jax, library) for library in LIBRARIES}, _name(jax))


@rule("jax-pytorch-numpy", "jax", "pytorch", sources=("N9", "J1"))
def jax_pytorch_numpy(context: Context, jax: Jax, torch: Torch) -> str | None:
    return numpy_reason(context.tables, torch, jax.row["release"]["numpy"], f"JAX {jax.version}")


@rule("jax-tensorflow-cuda-major", "jax", "tensorflow", sources=("S16", "J1"))
def jax_tensorflow_cuda_major(context: Context, jax: Jax, tensorflow: Tensorflow) -> str | None:
    if not jax.row["cuda"] or major(tensorflow.row["cuda"]) == jax.row["cuda"]:
        return None
    return f"{_name(jax)} does not share a process with TensorFlow {tensorflow.version}, which runs on CUDA {tensorflow.row['cuda']}"


@rule("jax-tensorflow-pins", "jax", "tensorflow", sources=("S16", "J1", "J3"))
def jax_tensorflow_pins(context: Context, jax: Jax, tensorflow: Tensorflow) -> str | None:
    """Both require NVIDIA's wheels; where TensorFlow pins one exactly, JAX must take it."""
    pins, cuda = tensorflow.row.get("pins"), jax.row["cuda"]
    if not pins or not cuda or major(tensorflow.row["cuda"]) != cuda:
        return None
    found = {
        "cudnn": pins[f"cudnn-cu{cuda}"],
        "nccl": pins[f"nccl-cu{cuda}"],
        "nvcc": _of_tensorflow(context, tensorflow, "nvcc"),
    }
    for library, pin in found.items():
        wanted = _required(jax, library)
        if pin and not meet(pin if pin[0] in "<>=~" else f"=={pin}", wanted):
            return f"TensorFlow {tensorflow.version} requires {library} {pin}, {_name(jax)} {wanted}"
    return None


@rule("jax-tensorflow-packages", "jax", "tensorflow", sources=("J1", "J3"))
def jax_tensorflow_packages(context: Context, jax: Jax, tensorflow: Tensorflow) -> str | None:
    """Both require NumPy and ml_dtypes."""
    release = jax.row["release"]
    for name, ours in (("numpy", release["numpy"]), ("ml_dtypes", release["ml_dtypes"])):
        theirs = _of_tensorflow(context, tensorflow, name)
        if theirs and not meet(theirs, ours):
            return f"TensorFlow {tensorflow.version} requires {name} {theirs}, JAX {jax.version} {ours}"
    return None


@rule("jax-cuda-major", "jax", "cuda", sources=("J2",))
def jax_cuda_major(context: Context, jax: Jax, cuda: Toolkit) -> str | None:
    """Prefer the plugin for the toolkit of the host, whose libraries go before those of wheels where LD_LIBRARY_PATH names them."""
    if cuda.absent or jax.row["cuda"] in ("", major(cuda.version)):
        return None
    return Doubt(
        f"whether {_name(jax)} takes its own libraries, where the host has the toolkit of CUDA {minor(cuda.version)}"
    )


@rule("jax-cupy-cuda-major", "jax", "cupy", sources=("S19", "J1"))
def jax_cupy_cuda_major(context: Context, jax: Jax, cupy: Cupy) -> str | None:
    if jax.row["cuda"] and jax.row["cuda"] != cupy.row["cuda"]:
        return f"{cupy.variant} is built for CUDA {cupy.row['cuda']}, not for that of {_name(jax)}"
    return None


def _reason(tables: Tables, question: Question, one: Jax) -> str:
    cuda = one.row["cuda"]
    floor = tables.major_driver_floor(cuda) if cuda else ""
    return f"{question.asked('jax')}; " + (
        f"plugin for CUDA {cuda} runs from driver {floor} on" if cuda else "on the CPU"
    )


def _warnings(tables: Tables, question: Question, one: Jax, beside: Beside) -> list[str]:
    """Return the warning that a GPU came after the CUDA that the plugin is built with."""
    steps = tables.beside(JAX_ROWS)["built"].get(one.row["cuda"], {})
    built = [cuda for first, cuda in steps.items() if at_least(one.version, first)]
    late = [
        gpu.model
        for gpu in question.gpus
        if built and not at_least(built[-1], tables.first_cuda(gpu.row["compute_capability"]))
    ]
    return [f"{_name(one)} is built with CUDA {built[-1]}, before the generation of {name}" for name in late]


def _requirements(tables: Tables, question: Question, one: Jax, beside: Beside) -> list[str]:
    cuda = one.row["cuda"]
    if not cuda:
        return [f"jax=={one.version}"]
    return [f"jax[{one.variant}]=={one.version}", *wheel_limits(tables, question, cuda)]


def _lines(tables: Tables) -> Iterator[tuple[object, ...]]:
    for row in reversed(tables.rows(JAX_ROWS)):
        cudnn = ", ".join(f"{plugin['cudnn']} (CUDA {cuda})" for cuda, plugin in row["plugins"].items())
        yield row["version"], row["released"], first_to_last(row["python"]), cudnn


JAX = Component(
    name="jax",
    form=Jax,
    keys=(Key(name="jax", docs=("JAX.",), sample='"0.7"'),),
    place="framework",
    candidates=_candidates,
    rules=rule,
    tables=(JAX_ROWS,),
    reason=_reason,
    warnings=_warnings,
    system=("glibc",),
    requirements=_requirements,
    module="jax",
    size={"cuda": 6000, "cpu": 600},  # jax 0.10.2 with NumPy: 5,490 and 528 MiB
    overview=Overview("JAX", ("release", "released", "Python", "cuDNN"), _lines),
)
