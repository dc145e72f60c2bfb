# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The source of an environment's interpreter: variables python_env_python and python_env_manager, and what a stack says of it."""

from __future__ import annotations

import re
from typing import Literal, TypedDict, cast, get_args

from ..problems.problem import Problem
from .model import Part
from .rows import DistroRow

INTERPRETER = "python_env_python"
MANAGER = "python_env_manager"
AUTO, CONDA = "auto", "conda"
Origin = Literal["distribution", "standalone", "conda", "path"]
ORIGINS: tuple[Origin, ...] = get_args(Origin)
CHOICES = (AUTO, "distribution", "standalone")
# 3.12 is the interpreter most wheels exist for; the others follow by distance. uv has standalone builds of all of them.
# conda's own are looked for where they are solved: conda-forge has these of today's (its pinning), and older ones as they were built.
PYTHONS = ("3.12", "3.11", "3.13", "3.10", "3.14", "3.9", "3.15", "3.8")


class PythonChoice(TypedDict):
    """The source of a Python; path: of one the user names."""

    source: Origin
    path: str | None


def constraint_of(manager: object, python: object) -> object:
    """Return the constraint of python_env_manager and python_env_python together; conda brings its own interpreters."""
    return CONDA if manager == CONDA else python or None


def variables_problem(manager: object, python: object) -> Problem | None:
    """Return the problem of the values of python_env_manager and python_env_python."""
    if python in (AUTO, None, ""):
        return None
    if manager == CONDA:
        return Problem("manager_interpreter", INTERPRETER, {"value": python})
    return interpreter_problem(python)


def interpreter_problem(value: object) -> Problem | None:
    """Return the problem of a value of python_env_python."""
    if value in CHOICES or (isinstance(value, str) and value.startswith("/") and not value.endswith("/")):
        return None
    code = "interpreter_relative" if "/" in str(value) else "interpreter_unknown"
    return Problem("interpreter_conda" if value == "conda" else code, INTERPRETER, {"value": value})


def version_of(path: str) -> str | None:
    """Return the version that the name of an interpreter tells: 3.10 of /usr/bin/python3.10."""
    found = re.search(r"/python(3\.[0-9]+)$", path)
    return found.group(1) if found else None


def choices(os: DistroRow | None, constraint: str) -> list[tuple[str, PythonChoice]]:
    """Return the Pythons of the origins that a constraint allows, the preferred first; a rule says what a distribution lacks.

    The system's own goes first, then what else the distribution has, then standalone builds. conda's only where they are asked for.
    """
    if constraint.startswith("/"):
        named = version_of(constraint)
        return [(number, {"source": "path", "path": constraint}) for number in PYTHONS if named in (None, number)]
    own = [os["python"]] if os and os["python"] in os["pythons"] else []
    numbers: dict[Origin, dict[str, None]] = {
        "distribution": dict.fromkeys([*own, *PYTHONS]),
        "standalone": dict.fromkeys(PYTHONS),
        "conda": dict.fromkeys(PYTHONS),
    }
    allowed = cast(tuple[Origin, ...], (constraint,) if constraint in ORIGINS else ("distribution", "standalone"))
    return [(number, {"source": origin, "path": None}) for origin in allowed for number in numbers.get(origin, ())]


def interpreter(os: DistroRow, version: str, choice: PythonChoice) -> Part:
    """Return the properties of an environment's interpreter that role python_env needs."""
    if choice["source"] == "distribution":
        return {
            "source": "distribution",
            "path": f"/usr/bin/python{version}",
            "packages": os["pythons"].get(version, []),
        }
    return {"source": choice["source"], "path": choice["path"], "packages": []}


def default_interpreter(os: DistroRow, version: str) -> Part:
    """Return the interpreter of an environment whose stack says nothing of it: an older collection locked it."""
    origin: Origin = "distribution" if version in os["pythons"] else "standalone"
    return interpreter(os, version, {"source": origin, "path": None})


def offered(os: DistroRow) -> str:
    """Return the Pythons of a distribution as words."""
    return " and ".join(filter(None, [", ".join(list(os["pythons"])[:-1]), list(os["pythons"])[-1]]))
