# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Planned against installed: the stack a node was to get beside what was found on it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from .model import Item
from .text import clean, mapping, mappings, texts

try:
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.version import InvalidVersion
except ImportError:  # ansible-core brings it; only ansible-test imports plugins without it
    InvalidRequirement = InvalidVersion = Requirement = None

AS_PLANNED, DIFFERS, MISSING, NOT_MEASURED = "as planned", "differs", "missing", "not measured"
_ORDER = {MISSING: 0, DIFFERS: 1, NOT_MEASURED: 2, AS_PLANNED: 3}
_PACKAGED = ("driver", "fabric_manager", "cuda", "cudnn", "nccl")


def compare(stack: Mapping[str, Any], state: Mapping[str, Any]) -> tuple[Item, ...]:
    """Items of gpu_stack against gpu_node_state; differences first, otherwise in the plan's order."""
    found = [*_driver(stack, state), *_packages(stack, state), *_environments(stack, state)]
    return tuple(sorted(found, key=lambda item: _ORDER[item.result]))


def _item(component: str, name: str, planned: str, installed: Any, measured: bool, agrees: bool) -> Item:
    if not measured:
        result = NOT_MEASURED
    elif installed in (None, ""):
        result = MISSING
    else:
        result = AS_PLANNED if agrees else DIFFERS
    return Item(component, name, planned, clean(installed) if measured else "", result)


def _driver(stack: Mapping[str, Any], state: Mapping[str, Any]) -> Iterator[Item]:
    driver = mapping(stack.get("driver"))
    if not driver:
        return
    wanted = _driver_pattern(driver)
    if state.get("driver") or not driver.get("packages"):
        installed = mapping(state.get("driver")).get("installed")
        known = "installed" in mapping(state.get("driver"))
        yield _item("driver", "version", wanted, installed, known, fnmatchcase(clean(installed), wanted))
    if driver.get("dkms_module"):
        yield _dkms(driver, state)
    components = texts(driver.get("components"))
    if components:
        enabled = state.get("apt_components")
        present = tuple(component for component in components if component in texts(enabled))
        agrees = present == components
        yield _item(
            "driver", "archive components", ", ".join(components), ", ".join(present), enabled is not None, agrees
        )


def _driver_pattern(driver: Mapping[str, Any]) -> str:
    """The versions that fulfil the plan: a distribution's archive holds one per branch, and decides which."""
    version, branch = clean(driver.get("version")), clean(driver.get("branch"))
    return f"{branch}.*" if branch and (driver.get("source") == "distribution" or not version) else version


def _dkms(driver: Mapping[str, Any], state: Mapping[str, Any]) -> Item:
    """The kernel module, built for the running kernel (or for an installed one where another host's kernel runs)."""
    name = driver["dkms_module"]
    kernels = mapping(state.get("kernel"))
    found = mappings(state.get("dkms"))
    built = [row for row in found if row.get("module") == name and row.get("status") == "installed"]
    wanted = (kernels.get("running"), kernels.get("newest"))
    fits = [row for row in built if row.get("kernel") in wanted] or built
    planned = _driver_pattern(driver)
    agrees = all(fnmatchcase(clean(row.get("version")), planned) for row in fits)
    return _item("driver", f"DKMS module {clean(name)}", planned, _kernels(fits), state.get("dkms") is not None, agrees)


def _kernels(rows: Iterable[Mapping[str, Any]]) -> str:
    """Versions of a DKMS module, with the kernels they were built for."""
    return ", ".join(sorted({f"{clean(row.get('version'))} for {clean(row.get('kernel'))}" for row in rows}))


def _packages(stack: Mapping[str, Any], state: Mapping[str, Any]) -> Iterator[Item]:
    installed = state.get("packages")
    for component in _PACKAGED:
        decided = mapping(stack.get(component))
        packages = mappings(decided.get("packages"))
        for package in packages:
            name = clean(package.get("name"))
            found = mapping(installed).get(name)
            wanted = clean(package.get("version")) or "*"
            agrees = fnmatchcase(clean(found), wanted)
            yield _item(component.replace("_", " "), name, _shown(wanted), found, installed is not None, agrees)
        if decided.get("version") and not packages and component != "driver":
            yield _item(component.replace("_", " "), "version", clean(decided["version"]), None, False, False)


def _shown(pattern: str) -> str:
    return "any version" if pattern == "*" else pattern


def _environments(stack: Mapping[str, Any], state: Mapping[str, Any]) -> Iterator[Item]:
    measured = state.get("environments")
    for environment in mappings(stack.get("environments")):
        label = f"environment {clean(environment.get('name'))}"
        found = mapping(mapping(measured).get(clean(environment.get("name"))))
        planned = clean(environment.get("python") or stack.get("python"))
        if planned:
            python = clean(found.get("python"))
            agrees = python == planned or python.startswith(planned + ".")
            yield _item(label, "python", planned, python, measured is not None, agrees)
        packages = {_normal(str(name)): version for name, version in mapping(found.get("packages")).items()}
        for line in texts(environment.get("requirements")):
            yield _requirement(label, line, packages, measured is not None)


def _normal(name: str) -> str:
    """The name by which Python packages are compared (PEP 503)."""
    return re.sub("[-_.]+", "-", name).lower()


def _requirement(label: str, line: str, packages: Mapping[str, Any], measured: bool) -> Item:
    """A line such as torch==2.13.0: 2.13.0+cpu fulfils it, because builds carry such suffixes (PEP 440)."""
    try:
        wanted = Requirement(line)
    except InvalidRequirement:
        return _item(label, line, "as written", None, False, False)
    version = packages.get(_normal(wanted.name))
    try:
        agrees = wanted.specifier.contains(clean(version), prereleases=True)
    except InvalidVersion:
        agrees = False
    planned = str(wanted.specifier).removeprefix("==") or "any version"
    return _item(label, wanted.name, planned, version, measured, agrees)
