# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what a user wrote to a Problem: names looked up in the tables, mistakes named with the nearest known value."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from ..preflight.scope import HERE
from .boards import fabric_services
from .component import Component
from .components import ALONE, COMPONENTS, DEFAULT, FRAMEWORKS, component, homeless, permitted_build
from .components.driver.kernels import is_limited
from .components.driver.owner import VENDOR, find_owner
from .gpu_names import find_gpu
from .input_error import InputError, nearest
from .interpreters import AUTO, CONDA, INTERPRETER, interpreter_problem, version_of
from .model import Environments, Gpu, Problem
from .pci_ids import pci_id
from .request_keys import ELSEWHERE, KEYS
from .rows import Arch, DistroRow, GpuRow
from .tables import Tables
from .versions import SpecError, check_spec, neighbours, starts_with
from .wording import listed

ARCHITECTURES: dict[str, Arch] = {
    "x86_64": "x86_64",
    "amd64": "x86_64",
    "aarch64": "aarch64",
    "arm64": "aarch64",
    "sbsa": "aarch64",
}
OS_NAMES = {"redhat": "rhel", "alma": "almalinux", "rockylinux": "rocky", "oracle": "oraclelinux", "ol": "oraclelinux"}


def make_problem(tables: Tables, question: Mapping[str, Any]) -> Problem:
    """Return the problem that a question poses; raise InputError for one nobody can work with.

    question: os, arch, gpus, gpu_models, python, interpreter, profile, request, environments, ansible_core, suites,
    nvswitches, kernels, driver_owner, installed_driver, take_charge; all may be absent.
    """
    request = _request(tables, question)
    environments = _word("environments", request.pop("environments", None) or question.get("environments") or "one")
    excluded = {name for name in FRAMEWORKS if str(request.get(name, "")).lower() in ("none", "false")}
    request = {name: value for name, value in request.items() if name not in excluded}
    if question.get("python") and "python" not in request:
        request["python"] = question["python"]
    wishes = {name: wish for name, value in request.items() if (wish := _wish(name, value)) != "auto"}
    wishes.update(_interpreter(question.get("interpreter") or AUTO, wishes.get("python", "")))
    gpus = _gpus(tables, question.get("gpus") or [], _gpu_models(question.get("gpu_models") or {}))
    owner = find_owner(question, gpus, wishes.get("driver_source") == VENDOR)
    problem = Problem(
        os=find_os(tables, question.get("os")),
        arch=_arch(question.get("arch")),
        gpus=gpus,
        wishes=wishes,
        frameworks=_frameworks(wishes, excluded),
        environments=cast(Environments, environments),
        accelerator="cuda" if gpus else "cpu",
        wheels=_arch(question.get("arch")),
        permitted_build=permitted_build(wishes),
        forward_compat=bool(gpus) and all(gpu.row["forward_compat"] for gpu in gpus),
        has_driver=bool(gpus) or bool({"driver", "driver_source", "kernel_modules"} & set(wishes)),
        ansible_core=question.get("ansible_core"),
        suites=tuple(question["suites"]) if question.get("suites") else None,
        fabric=frozenset() if owner else fabric_services(tables, gpus, question.get("nvswitches")),
        owner=owner,
        own_compiler="gcc" not in wishes,
        kernels=tuple(release for release in question.get("kernels") or () if is_limited(tables, release)),
    )
    _check_known(tables, problem)
    return problem


def _request(tables: Tables, question: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the profile and the user ask for, the user's word first; raise InputError for a key nobody knows."""
    request = {**_profile(tables, question.get("profile")), **(question.get("request") or {})}
    request = {name: value for name, value in request.items() if value is not None}
    unknown = sorted(set(request) - set(KEYS))
    if unknown and unknown[0] in ELSEWHERE:
        raise InputError("key_of_others", unknown[0], reason=ELSEWHERE[unknown[0]])
    if unknown:
        raise InputError("unknown_request_key", unknown[0], nearest=nearest(unknown[0], KEYS, 1))
    return request


def _profile(tables: Tables, name: str | None) -> Mapping[str, Any]:
    """Return the request a name stands for."""
    profiles = tables.subjects["profiles"]["profiles"]
    if name and name not in profiles:
        raise InputError("unknown_profile", name, nearest=nearest(name, profiles))
    return profiles[name]["request"] if name else {}


def _frameworks(wishes: Iterable[str], excluded: Container[str]) -> tuple[str, ...]:
    """Return the frameworks to install: those wished for, and PyTorch where nothing else is, or where one lives beside it."""
    wishes = set(wishes)
    named = {name for name in FRAMEWORKS if wishes & set(component(name).reads)}
    if DEFAULT not in excluded and (not named & set(ALONE) or homeless(named)):
        named.add(DEFAULT)
    for name in homeless(named):
        raise InputError("needs_framework", name, others=listed(component(name).beside, "or"))
    return tuple(name for name in FRAMEWORKS if name in named)


def _wish(name: str, value: Any) -> str:
    if isinstance(value, float):  # 2.10 without quotes is the number 2.1 before anybody here sees it
        raise InputError("version_without_quotes", name, value=value)
    if KEYS[name].choices:
        return _word(name, value)
    if KEYS[name].free:
        return str(value).strip()
    try:
        wish = check_spec(value)
    except SpecError as error:
        raise InputError("wrong_version", name, value=str(value)) from error
    return wish


def _word(name: str, value: str) -> str:
    if value not in KEYS[name].choices:
        raise InputError("wrong_word", name, value=value, choices=list(KEYS[name].choices))
    return value


def _interpreter(value: object, python: str) -> Mapping[str, str]:
    """Return the wish that python_env_python is, or python_env_manager; python: the version wished for."""
    if value == CONDA:
        return {INTERPRETER: CONDA}
    problem = interpreter_problem(value)
    if problem:
        raise InputError(problem.code, problem.subject, **problem.detail, scope=HERE)
    path = str(value)
    if path.startswith("/") and version_of(path) is None and not (python[:1].isdigit() and "." in python):
        raise InputError("interpreter_version", INTERPRETER, value=path, scope=HERE)
    return {} if value == AUTO else {INTERPRETER: path}


def _arch(value: object) -> Arch:
    try:
        return ARCHITECTURES[str(value or "x86_64").lower()]
    except KeyError:
        raise InputError("unknown_architecture", value) from None


def find_os(tables: Tables, value: object) -> DistroRow:
    """Return the row of an operating system: 'rocky 8.10' and {id: rocky, version: '8.10'} are rocky 8."""
    if not value:
        raise InputError("no_os")
    if isinstance(value, Mapping):
        value = f"{value.get('id', '')} {value.get('version', '')}"
    name, _space, number = str(value).strip().lower().partition(" ")
    name, number = OS_NAMES.get(name, name), number.strip()
    for row in tables.rows("distros"):
        if row["id"] == name and number and starts_with(number, row["version"]):
            return row
    known = [f"{row['id']} {row['version']}" for row in tables.rows("distros")]
    raise InputError("unknown_os", str(value).strip(), nearest=nearest(value, known))


def _gpu_models(values: Mapping[object, object]) -> dict[str, str]:
    """Return {PCI device id: model} of the GPUs that the user names."""
    for value in values:
        if pci_id(value) is None:
            raise InputError("wrong_pci_id", value)
    return {str(pci_id(value)): str(model) for value, model in values.items()}


def _gpus(tables: Tables, values: Iterable[object], models: Mapping[str, str]) -> tuple[Gpu, ...]:
    """Return the GPUs by model, counted, in an order that does not depend on theirs."""
    rows: dict[tuple[str, str], list[GpuRow]] = {}
    for value in values:
        row = _gpu(tables, value, models)
        rows.setdefault((row["model"], row["compute_capability"]), []).append(row)
    return tuple(Gpu(row=found[0], model=key[0], count=len(found)) for key, found in sorted(rows.items()))


def _gpu(tables: Tables, value: object, models: Mapping[str, str]) -> GpuRow:
    number = pci_id(value.get("pci_device_id")) if isinstance(value, Mapping) else None
    named = models.get(number or "")
    row = find_gpu(tables, named or value)
    if row is not None:
        return row
    if isinstance(value, Mapping) and not named and number:
        name = value.get("name") or value.get("pci_name") or "a name that its PCI ID database does not have"
        raise InputError("unknown_gpu_id", number, address=value.get("pci_bus_id"), name=name)
    shown = named or (value.get("name") if isinstance(value, Mapping) else value)
    raise InputError("unknown_gpu", shown, nearest=nearest(shown, [one["model"] for one in tables.rows("gpus")]))


def _check_known(tables: Tables, problem: Problem) -> None:
    """Refuse a version that nobody published, and a driver that is not there: mistakes in writing, not conflicts."""
    if problem.owner and problem.has_driver and problem.owner.version is None:
        vgpu = next((gpu.model for gpu in problem.gpus if gpu.row.get("vgpu")), None)
        raise InputError("no_guest_driver", vgpu) if vgpu else InputError("no_driver_left", problem.owner.name)
    for one in COMPONENTS:
        wish = problem.wishes.get(one.name)
        mistake = (_unknown_version(tables, problem, one, wish) if wish else None) or one.mistake(tables, problem)
        if mistake:
            raise mistake


def _unknown_version(tables: Tables, problem: Problem, made: Component, wish: str) -> InputError | None:
    """Return that no version of the tables fits a wish, with those next to it."""
    free = replace(problem.without_wishes(*problem.wishes), owner=None)
    asked = replace(free, wishes={made.name: wish}, accelerator="cuda")
    if not made.published or made.candidates(tables, asked):
        return None
    known = dict.fromkeys(one.version for one in made.candidates(tables, free) if not one.absent)
    return InputError("unknown_version", made.name, value=wish, nearest=_nearest_versions(wish, known))


def _nearest_versions(wish: str, known: Iterable[str]) -> str:
    """Return the known versions next to the one that a wish, maybe a range, names first."""
    named = re.search(r"\d+(\.\d+)*", wish)
    return ", ".join(neighbours(named[0], known)) if named else nearest(wish, known)
