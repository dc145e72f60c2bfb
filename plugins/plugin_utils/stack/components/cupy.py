# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CuPy, whose wheels are for one major of CUDA each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypedDict

from ..component import Beside, Component, Overview, first_to_last
from ..facts import GpuModel, Machine
from ..keys import Key
from ..libraries import SpecifierSet
from ..model import Candidate, Question
from ..rule import Context, Doubt, Rules
from ..tables import Subject, Tables
from ..versions import at_least, major, matches, minor, version
from ..wording import listed
from .cuda import Toolkit
from .driver.row import Driver
from .python import Python
from .pytorch.row import Torch, bundled, numpy_reason
from .tensorflow import Tensorflow

rule = Rules()

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class CupyRow(TypedDict):
    series: int
    python: list[str]
    wheels: dict[str, list[str]]
    min_cc: str | None
    max_cc: NotRequired[str | None]
    numpy: str


class CupyTable(TypedDict):
    """ctk_first: the first release with the extra that brings CUDA's wheels; cuda_first: of a package, where its major has older ones."""

    ctk_first: str
    cuda_first: dict[str, str]


CUPY_ROWS = Subject("cupy", CupyRow, CupyTable)


class CupyChoice(CupyRow):
    """A wheel of CuPy, with the major of the CUDA it is built for."""

    cuda: str


Cupy = Candidate[CupyChoice]


def _cupy(tables: Tables, question: Question) -> list[Cupy]:
    constraint = question.constraint("cupy")
    found: list[Cupy] = [
        Candidate("cupy", release, package, {**row, "cuda": package[len("cupy-cuda") : -1]})
        for row in tables.rows(CUPY_ROWS)
        for package, releases in row["wheels"].items()
        for release in releases
        if matches(release, constraint)
    ]
    return sorted(found, key=lambda one: (version(one.version), one.variant), reverse=True)


@rule("cupy-arch", "cupy", "arch", sources=("P1",))
def cupy_arch(context: Context, cupy: Cupy, arch: Machine) -> str | None:
    """The package index has wheels for aarch64 from the twelfth series on."""
    if arch.version == "aarch64" and not at_least(cupy.version, "12.0"):
        return f"CuPy {cupy.version} has no wheels for aarch64, where 12.0 is the first that does"
    return None


@rule("cupy-cuda-major", "cupy", "cuda", sources=("S19", "P4"))
def cupy_cuda_major(context: Context, cupy: Cupy, cuda: Toolkit) -> str | None:
    """The host's toolkit is what CuPy finds; releases that can bring CUDA's wheels are doubted next to another one."""
    first = context.tables.beside(CUPY_ROWS)["cuda_first"].get(cupy.variant, cupy.row["cuda"])
    if cuda.absent or major(cuda.version) == cupy.row["cuda"] and at_least(cuda.version, first):
        return None
    toolkit = f"CUDA {minor(cuda.version)}"
    if brings_cuda(context.tables, cupy):
        return Doubt(
            f"whether {cupy.variant} {cupy.version} takes its own libraries, where the host has the toolkit of {toolkit}"
        )
    built = f"CUDA {cupy.row['cuda']}" if first == cupy.row["cuda"] else f"CUDA {first} and newer {cupy.row['cuda']}.x"
    return f"{cupy.variant} is built for {built}, and the host has the toolkit of {toolkit}"


def brings_cuda(tables: Tables, cupy: Cupy) -> bool:
    """Return True if a release has the extra that brings the wheels of NVRTC, the runtime and the libraries."""
    return at_least(cupy.version, tables.beside(CUPY_ROWS)["ctk_first"])


def _is_alone(question: Question, cupy: Cupy, beside: Beside) -> bool:
    """Return True if neither a toolkit on the host nor wheels of others bring NVRTC and the runtime."""
    cuda, torch, tensorflow = beside.get("cuda"), beside.get("pytorch"), beside.get("tensorflow")
    wheels = torch and torch.variant != "cpu" and not bundled(torch)
    toolkit = cuda and not cuda.absent and major(cuda.version) == cupy.row["cuda"]
    others = wheels or (tensorflow and tensorflow.row["and_cuda"])
    return question.accelerator == "cuda" and not toolkit and not others


def _requirements(tables: Tables, question: Question, cupy: Cupy, beside: Beside) -> list[str]:
    extra = "[ctk]" if brings_cuda(tables, cupy) and _is_alone(question, cupy, beside) else ""
    return [f"{cupy.variant}{extra}=={cupy.version}"]


def _warnings(tables: Tables, question: Question, cupy: Cupy, beside: Beside) -> list[str]:
    """Return the warning that nothing brings what it compiles kernels with; a toolkit is planned only where one is asked for or used."""
    if "cuda" in question.constraints or brings_cuda(tables, cupy) or not _is_alone(question, cupy, beside):
        return []
    able = any(_can_bring(tables, row, question) for row in tables.rows(CUPY_ROWS))
    newer = f", or for CuPy {tables.beside(CUPY_ROWS)['ctk_first']} or newer, which brings them" if able else ""
    return [
        f"{cupy.variant} {cupy.version} needs NVRTC and the CUDA runtime, which neither a toolkit on the host nor other wheels bring: ask for "
        f"cuda {cupy.row['cuda']} as well{newer}"
    ]


def _can_bring(tables: Tables, row: CupyRow, question: Question) -> bool:
    """Return True if releases of a row bring CUDA's wheels, and support every GPU of the host."""
    brings = any(
        at_least(one, tables.beside(CUPY_ROWS)["ctk_first"]) for wheels in row["wheels"].values() for one in wheels
    )
    return brings and all(at_least(gpu.row["compute_capability"], row["min_cc"] or "0") for gpu in question.gpus)


@rule("pytorch-cupy-cuda-major", "pytorch", "cupy", sources=("S19", "S26"))
def pytorch_cupy_cuda_major(context: Context, torch: Torch, cupy: Cupy) -> str | None:
    """In one process both must speak to one CUDA runtime."""
    if torch.variant != "cpu" and major(torch.row["cuda"]) != cupy.row["cuda"]:
        return f"{cupy.variant} is built for CUDA {cupy.row['cuda']}, PyTorch {torch.version}+{torch.variant} for CUDA {minor(torch.row['cuda'])}"
    return None


@rule("pytorch-cupy-numpy", "pytorch", "cupy", sources=("N9", "S19"))
def pytorch_cupy_numpy(context: Context, torch: Torch, cupy: Cupy) -> str | None:
    return numpy_reason(context.tables, torch, cupy.row["numpy"], f"CuPy {cupy.version}")


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
    low, high = row["min_cc"] or capability, row.get("max_cc") or capability
    if not at_least(capability, low) or not at_least(high, capability):
        return f"CuPy {cupy.version} supports compute capability {low} to {high}; {gpu.version} has {capability}"
    ends = {"oldest": row["min_cc"], "newest": row.get("max_cc", "none")}
    unknown = [end for end, value in ends.items() if value is None]
    return Doubt(f"the {listed(unknown)} GPU generation that CuPy {cupy.version} supports") if unknown else None


@rule("cupy-cuda-gpu", "cupy", "gpus", sources=("S6", "S19"))
def cupy_cuda_gpu(context: Context, cupy: Cupy, gpu: GpuModel) -> str | None:
    """It compiles its kernels with NVRTC of the CUDA it is built for, and a major of CUDA drops generations."""
    capability, lowest = gpu.row["compute_capability"], context.tables.lowest_capability(cupy.row["cuda"])
    if not at_least(capability, lowest):
        return f"{cupy.variant} compiles for compute capability {lowest} and newer: CUDA {cupy.row['cuda']} dropped {gpu.version} ({capability})"
    return None


@rule("cupy-driver-floor", "cupy", "driver", sources=("S1", "S19"))
def cupy_driver_floor(context: Context, cupy: Cupy, driver: Driver) -> str | None:
    floor = context.tables.major_driver_floor(cupy.row["cuda"])
    if not at_least(driver.version, floor):
        return f"{cupy.variant} (CUDA {cupy.row['cuda']}) needs driver {floor} or newer, not {driver.version}"
    return None


KEY = Key(name="cupy", docs=("CuPy.",), sample="latest")


def _lines(tables: Tables) -> Iterator[tuple[object, ...]]:
    for row in reversed(tables.rows(CUPY_ROWS)):
        wheels = ", ".join(f"{name} {versions[-1]}" for name, versions in row["wheels"].items())
        yield row["series"], first_to_last(row["python"]), wheels


CUPY = Component(
    name="cupy",
    form=Cupy,
    keys=(KEY,),
    place="framework",
    candidates=_cupy,
    rules=rule,
    tables=(CUPY_ROWS,),
    warnings=_warnings,
    requirements=_requirements,
    module="cupy",
    size={"cuda": 3000, "cpu": 500},  # with CUDA's wheels, where nothing else brings them
    overview=Overview("CuPy", ("series", "Python", "wheels"), _lines),
)
