# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages that a site wants in addition to the frameworks (python_env_packages): what they may be, and the plan with them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

with suppress(ImportError):  # ansible-core depends on it; only ansible-test's import check runs without it
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

from ..problems.problem import Problem
from ..stack.components import FRAMEWORKS, component

PACKAGES = "python_env_packages"
# What gpu_stack_request chooses, in the build that fits the rest: packages, which are called like their modules.
CHOSEN = {component(name).module: name for name in FRAMEWORKS}
# The modules by which packages show that they work, of those that are known to have been tried. Of others the version is compared.
MODULES = {"mpi4py": "mpi4py", "catboost": "catboost", "torchvision": "torchvision", "torchaudio": "torchaudio", "torchmetrics": "torchmetrics"}  # fmt: skip

# Modules that load libraries of the host when they are imported: its MPI, and the driver.
OF_THE_HOST = ("mpi4py", "cupy")


def problems(value: object) -> list[Problem]:
    """Return the problems of a value of python_env_packages, a list or a text with commas; another type is refused by that."""
    lines = value.split(",") if isinstance(value, str) else value
    return [one for line in lines if (one := _problem(line))] if isinstance(lines, Sequence) else []


def _problem(line: object) -> Problem | None:
    try:
        requirement = Requirement(str(line))
    except InvalidRequirement:
        return Problem("package_no_requirement", PACKAGES, {"value": str(line)})
    if requirement.url or requirement.marker:  # which could not be compared with what is installed
        return Problem("package_no_requirement", PACKAGES, {"value": str(line)})
    name = canonicalize_name(requirement.name)
    chosen = "cupy" if name.startswith("cupy-") else CHOSEN.get(name)  # one package for each major of CUDA
    return Problem("package_chosen", PACKAGES, {"value": str(line), "component": chosen}) if chosen else None


def asked(variables: Mapping[str, Any]) -> list[str]:
    """Return the packages that a node's variables ask for; python_env_packages is a list or a text with commas."""
    value = variables.get(PACKAGES) or ()
    return [line.strip() for line in value.split(",")] if isinstance(value, str) else [str(line) for line in value]


def with_packages(stack: Mapping[str, Any], packages: Iterable[str]) -> dict[str, Any]:
    """Return a stack whose environments have these packages, too."""
    return {**stack, "environments": [_with(one, packages) for one in stack["environments"]]}


def _with(environment: Mapping[str, Any], packages: Iterable[str]) -> dict[str, Any]:
    more = [line for line in packages if line not in environment["requirements"]]
    return {**environment, "requirements": [*environment["requirements"], *more]}


def own_modules(environment: Mapping[str, Any]) -> list[str]:
    """Return the modules that show that an environment works, whatever else the host has."""
    names = [component(name).module for name in environment.get("frameworks") or {} if name in FRAMEWORKS]
    wanted = dict.fromkeys([*names, *modules(environment.get("requirements") or [])])
    return [name for name in wanted if name not in OF_THE_HOST]


def modules(requirements: Iterable[str]) -> list[str]:
    """Return the modules to import for an environment's packages."""
    names = (canonicalize_name(Requirement(line).name) for line in requirements)
    return [MODULES[name] for name in dict.fromkeys(names) if name in MODULES]
