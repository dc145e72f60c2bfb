# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The compilation of Horovod in an environment: from which source, with which flags and tools, and what it then has."""

from __future__ import annotations

from collections.abc import Mapping

from ...model import AnyCandidate, Part, Question
from ...tables import Tables
from ...versions import at_least
from .row import HOROVOD_ROWS, CxxStandard


def cxx_standard(tables: Tables, torch: str) -> CxxStandard:
    """Return the C++ standard that a release of PyTorch asks of those who compile against its headers."""
    return [one for one in tables.beside(HOROVOD_ROWS)["cxx_standards"] if at_least(torch, one["torch"])][-1]


def build(
    tables: Tables, question: Question, parts: Mapping[str, AnyCandidate], interpreter: list[str], cuda_home: str | None
) -> Part:
    """Return the build of one environment; interpreter: its packages, if the distribution has it."""
    row, known = parts["horovod"].row, tables.beside(HOROVOD_ROWS)
    standard = cxx_standard(tables, parts["pytorch"].version)["standard"] if "pytorch" in parts else 0
    return {
        "version": row["version"],
        "requirement": row["requirement"],
        "source": dict(row["source"], standard=row["cxx_std"]),
        "cxx_standard": max(standard, row["cxx_std"]),
        "controllers": known["controllers"],
        "operations": known["operations"][parts["horovod"].row["target"]],
        "frameworks": [name for name in ("pytorch", "tensorflow") if name in parts],
        "environment": _flags(tables, question, parts, cuda_home),
        "packages": _packages(tables, question, interpreter),
        "tools": known["tools"],
        "build_isolation": False,
    }


def _flags(
    tables: Tables, question: Question, parts: Mapping[str, AnyCandidate], cuda_home: str | None
) -> dict[str, str]:
    known = tables.beside(HOROVOD_ROWS)["build_environment"]
    flags = {**known["all"], **known[parts["horovod"].row["target"]]}
    for name in ("pytorch", "tensorflow"):
        flags[f"HOROVOD_{'WITH' if name in parts else 'WITHOUT'}_{name.upper()}"] = "1"
    if parts["horovod"].row["target"] == "cuda":
        capabilities = sorted({gpu.row["compute_capability"] for gpu in question.gpus}, key=float)
        flags["HOROVOD_BUILD_CUDA_CC_LIST"] = ",".join(one.replace(".", "") for one in capabilities)
        flags.update({"HOROVOD_CUDA_HOME": cuda_home} if cuda_home else {})
    return dict(sorted(flags.items()))


def _packages(tables: Tables, question: Question, interpreter: list[str]) -> list[str]:
    """Return the compilers and, of an interpreter of the distribution, its headers; others bring theirs."""
    known = tables.beside(HOROVOD_ROWS)["packages"][question.system["package_manager"]]
    return known["names"] + [name + known["headers"] for name in interpreter[:1]]
