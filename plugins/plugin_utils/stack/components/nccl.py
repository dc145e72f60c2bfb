# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NCCL as a library of the host."""

from __future__ import annotations

from ..component import Beside, Component
from ..keys import Key
from ..model import Part, Problem
from ..package import Package
from ..repository_libraries import Library, LibraryRow, is_in_repository, library_result, packaged, repository_warnings
from ..rule import Context, Rules
from ..tables import Nothing, Subject, Tables
from ..versions import at_least, major, minor
from .cuda import Toolkit

NCCL_ROWS = Subject("nccl", LibraryRow, Nothing)
rule = Rules()


def _nccl(tables: Tables, problem: Problem) -> list[Library]:
    return packaged("nccl", tables.rows(NCCL_ROWS), problem)


@rule("nccl-cuda", "nccl", "cuda", sources=("S22", "K1"))
def nccl_cuda(context: Context, nccl: Library, cuda: Toolkit) -> str | None:
    """System NCCL is one build per CUDA release; the build must not be newer than the toolkit, nor of another major."""
    if nccl.absent:
        return None
    if cuda.absent:
        return None
    build = nccl.row["cuda"]
    if major(build) != major(cuda.version) or not at_least(minor(cuda.version), build):
        return f"NCCL {nccl.version} (built for CUDA {build}) does not fit CUDA {minor(cuda.version)}"
    return None


KEY = Key(
    name="nccl",
    docs=("NCCL as a system library.",),
    sample="latest",
)


def _packages(problem: Problem, nccl: Library) -> list[Package]:
    names = ("libnccl", "libnccl-devel") if problem.system["package_manager"] == "dnf" else ("libnccl2", "libnccl-dev")
    return [{"name": name, "version": f"{nccl.version}-1+cuda{nccl.row['cuda']}"} for name in names]


def _result(tables: Tables, problem: Problem, host: Beside) -> Part:
    return {"nccl": library_result(problem, host.get("nccl"), _packages)}


NCCL = Component(
    name="nccl",
    form=Library,
    keys=(KEY,),
    place="host",
    candidates=_nccl,
    rules=rule,
    tables=(NCCL_ROWS,),
    warnings=repository_warnings,
    result=_result,
    installable=lambda tables, problem, one: is_in_repository(tables.rows(NCCL_ROWS), problem, one),
)
