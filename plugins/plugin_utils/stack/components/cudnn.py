# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""cuDNN as a library of the host."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypedDict

from ..component import Beside, Component
from ..facts import GpuModel
from ..keys import Key
from ..model import Candidate, Part, Question
from ..nvidia_wheels import released
from ..package import Package
from ..repository_libraries import (
    Library,
    LibraryRow,
    is_in_repository,
    label_of_build,
    library_result,
    packaged,
    repository_warnings,
)
from ..rule import Context, Rules
from ..tables import Subject, Tables
from ..versions import at_least, major, minor, version
from .cuda import Toolkit

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class CudnnRow(LibraryRow):
    cuda_last: NotRequired[str]
    min_cc: str


class CudnnTable(TypedDict):
    """By CUDA major: first_cc: the first compute capability of cuDNN 9; min_cc: the versions that begin with a newer one than before."""

    first_cc: dict[str, str]
    min_cc: dict[str, dict[str, str]]


CUDNN_ROWS = Subject("cudnn", CudnnRow, CudnnTable)


Cudnn = Candidate[CudnnRow]
rule = Rules()


def dropped_with(tables: Tables, cuda: str, capability: str) -> str | None:
    """Return the first cuDNN whose wheel for a CUDA major has no code for a compute capability any more; None where all have."""
    steps = tables.beside(CUDNN_ROWS)["min_cc"].get(cuda, {})
    return next((first for first, floor in steps.items() if not at_least(capability, floor)), None)


def wheel_limits(tables: Tables, question: Question, cuda: str) -> list[str]:
    """Return the limits that keep cuDNN's wheel for a CUDA major at a version that has code for every GPU of the host."""
    found = (dropped_with(tables, cuda, gpu.row["compute_capability"]) for gpu in question.gpus)
    return sorted({f"nvidia-cudnn-cu{cuda}<{first}" for first in found if first})


def _cudnn(tables: Tables, question: Question) -> list[Library]:
    return packaged("cudnn", _rows(tables), question)


@cache
def _rows(tables: Tables) -> list[CudnnRow]:
    """Return the builds that were seen in repositories, and those that the wheels show to be released for a CUDA major."""
    seen = tables.rows(CUDNN_ROWS)
    known = {(row["version"], major(row["cuda"])) for row in seen}
    missing = [one for one in released(tables, "cudnn") if one not in known and major(one[0]) != "8"]
    more: list[CudnnRow] = [
        {"version": release, "cuda": cuda, "min_cc": _first(tables, release, cuda), "repositories": []}
        for release, cuda in missing
    ]
    return [*seen, *more]


def _first(tables: Tables, release: str, cuda: str) -> str:
    """Return the first compute capability that a release of cuDNN 9 has code for."""
    table = tables.beside(CUDNN_ROWS)
    steps = [floor for first, floor in table["min_cc"].get(cuda, {}).items() if at_least(release, first)]
    return max([table["first_cc"][cuda], *steps], key=version)


@rule("cudnn-cuda", "cudnn", "cuda", sources=("S20", "K1"))
def cudnn_cuda(context: Context, cudnn: Cudnn, cuda: Toolkit) -> str | None:
    """System cuDNN stands on a system CUDA of its own major, up to the newest that it supports."""
    if cudnn.absent:
        return None
    if cuda.absent:
        return f"cuDNN {cudnn.version} as a system library needs a CUDA toolkit next to it"
    if major(cudnn.row["cuda"]) != major(cuda.version):
        return f"cuDNN {cudnn.version} ({cudnn.variant}) is not built for CUDA {minor(cuda.version)}"
    last = cudnn.row.get("cuda_last")
    if last and not at_least(last, minor(cuda.version)):
        return f"cuDNN {cudnn.version} supports CUDA up to {last}, not {minor(cuda.version)}"
    return None


@rule("cudnn-gpu", "cudnn", "gpus", sources=("S20",))
def cudnn_gpu(context: Context, cudnn: Cudnn, gpu: GpuModel) -> str | None:
    """cuDNN 9 begins with Maxwell, and with Turing from 9.11 on."""
    if not cudnn.absent and not at_least(gpu.row["compute_capability"], cudnn.row["min_cc"]):
        return f"cuDNN {cudnn.version} dropped {gpu.version}: it begins with compute capability {cudnn.row['min_cc']}"
    return None


KEY = Key(
    name="cudnn",
    label=label_of_build,
    docs=("cuDNN as a system library.",),
    sample='"8.9"',
)


def _packages(question: Question, cudnn: Library) -> list[Package]:
    dnf, build = question.system["package_manager"] == "dnf", cudnn.row["cuda"]
    if major(cudnn.version) == "8":
        version = f"{cudnn.version}-1{'.' if dnf else '+'}cuda{build}"
        names = ("libcudnn8", "libcudnn8-devel" if dnf else "libcudnn8-dev")
    else:
        version = f"{cudnn.version}-1"
        names = (f"libcudnn9-cuda-{build}", f"libcudnn9-{'devel' if dnf else 'dev'}-cuda-{build}")
    return [{"name": name, "version": version} for name in names]


def _result(tables: Tables, question: Question, host: Beside) -> Part:
    return {"cudnn": library_result(question, host.get("cudnn"), _packages)}


def _installable(tables: Tables, question: Question, one: Library) -> bool:
    return is_in_repository(_rows(tables), question, one)


CUDNN = Component(
    name="cudnn",
    form=Cudnn,
    keys=(KEY,),
    place="host",
    candidates=_cudnn,
    rules=rule,
    tables=(CUDNN_ROWS,),
    uses=("cuda",),
    warnings=repository_warnings,
    result=_result,
    installable=_installable,
)
