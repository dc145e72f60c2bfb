# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NCCL as a library of the host."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from ..component import Beside, Component
from ..facts import GpuModel
from ..keys import Key
from ..model import Candidate, Part, Question
from ..nvidia_wheels import released
from ..package import Package
from ..repository_libraries import (
    LibraryRow,
    is_in_repository,
    label_of_build,
    library_result,
    packaged,
    repository_warnings,
)
from ..rule import Context, Rules
from ..tables import Nothing, Subject, Tables
from ..versions import at_least, major, minor, version
from .cuda import Toolkit
from .driver.row import Driver


class NcclRow(LibraryRow):
    """instead: the builds, by CUDA release, that could be taken in place of this one."""

    instead: tuple[str, ...]


Nccl = Candidate[NcclRow]
NCCL_ROWS = Subject("nccl", LibraryRow, Nothing)
rule = Rules()


def _nccl(tables: Tables, question: Question) -> list[Nccl]:
    rows = _rows(tables)
    return packaged("nccl", [_beside(row, rows, question) for row in rows], question)


@cache
def _rows(tables: Tables) -> list[LibraryRow]:
    """Return the builds that were seen in repositories, and those that the wheels show to be released for a CUDA major."""
    seen = tables.rows(NCCL_ROWS)
    known = {(row["version"], major(row["cuda"])) for row in seen}
    missing = [one for one in released(tables, "nccl") if one not in known and not version(one[0]).is_postrelease]
    more: list[LibraryRow] = [{"version": release, "cuda": cuda, "repositories": []} for release, cuda in missing]
    return [*seen, *more]


def _beside(row: LibraryRow, rows: Sequence[LibraryRow], question: Question) -> NcclRow:
    """Return a build with those of its version, where one was asked for, else with all: of the host's repository, where it has any."""
    named = question.constraint("nccl") != "latest"
    others = [one for one in rows if not named or one["version"] == row["version"]]
    seen = [one for one in others if question.os and question.os["repository"] in one["repositories"]]
    return {**row, "instead": tuple(one["cuda"] for one in seen or others)}


@rule("nccl-cuda", "nccl", "cuda", sources=("S22", "K1", "M1", "M2"))
def nccl_cuda(context: Context, nccl: Nccl, cuda: Toolkit) -> str | None:
    """System NCCL goes with any toolkit of its major; a build that is newer than the toolkit only where there is none that is not."""
    if nccl.absent or cuda.absent:
        return None
    build, toolkit = nccl.row["cuda"], minor(cuda.version)
    fitting = any(major(one) == major(toolkit) and at_least(toolkit, one) for one in nccl.row["instead"])
    if major(build) == major(toolkit) and (at_least(toolkit, build) or not fitting):
        return None
    return f"NCCL {nccl.version} (built for CUDA {build}) does not fit CUDA {toolkit}"


@rule("nccl-driver-floor", "nccl", "driver", sources=("S1", "M1", "M2"))
def nccl_driver_floor(context: Context, nccl: Nccl, driver: Driver) -> str | None:
    """Minor-version compatibility: any driver from the floor of its CUDA major on. A toolkit that is asked for has that floor, or cuda-compat."""
    if nccl.absent or "cuda" in context.asked:
        return None
    build, floor = nccl.row["cuda"], context.tables.major_driver_floor(major(nccl.row["cuda"]))
    if at_least(driver.version, floor):
        return None
    return f"NCCL {nccl.version} (built for CUDA {build}) needs driver {floor} or newer, not {driver.version}"


@rule("nccl-gpu", "nccl", "gpus", sources=("S6", "M2"))
def nccl_gpu(context: Context, nccl: Nccl, gpu: GpuModel) -> str | None:
    """A build holds code for what its CUDA compiles for."""
    if nccl.absent:
        return None
    build, capability = nccl.row["cuda"], gpu.row["compute_capability"]
    lowest = context.tables.lowest_capability(major(build))
    if at_least(capability, lowest):
        return None
    return f"NCCL {nccl.version} (built for CUDA {build}) has no code for {gpu.version}: CUDA {major(build)} begins with compute capability {lowest}"


KEY = Key(
    name="nccl",
    label=label_of_build,
    docs=("NCCL as a system library.",),
    sample="latest",
)


def _packages(question: Question, nccl: Nccl) -> list[Package]:
    names = ("libnccl", "libnccl-devel") if question.system["package_manager"] == "dnf" else ("libnccl2", "libnccl-dev")
    build = nccl.row["cuda"]
    # Which minor of its CUDA a package is built for is known of those that were seen.
    return [
        {"name": name, "version": f"{nccl.version}-1+cuda{build if '.' in build else f'{build}.*'}"} for name in names
    ]


def _result(tables: Tables, question: Question, host: Beside) -> Part:
    return {"nccl": library_result(question, host.get("nccl"), _packages)}


NCCL = Component(
    name="nccl",
    form=Nccl,
    keys=(KEY,),
    place="host",
    candidates=_nccl,
    rules=rule,
    tables=(NCCL_ROWS,),
    warnings=repository_warnings,
    result=_result,
    installable=lambda tables, question, one: is_in_repository(_rows(tables), question, one),
    identity=lambda one: one.row["instead"] if one.row else (),
)
