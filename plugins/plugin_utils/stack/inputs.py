# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what a user asks for: names looked up in the tables, mistakes named with the nearest known value."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from ..problems.scope import HERE
from .boards import fabric_services
from .component import Component
from .components import ALONE, COMPONENTS, DEFAULT, FRAMEWORKS, component, homeless, permitted_build
from .components.driver.kernels import is_limited
from .components.driver.owner import VENDOR, find_owner
from .gpu_names import find_gpu
from .input_error import InputError, nearest
from .interpreters import AUTO, CONDA, INTERPRETER, interpreter_problem, version_of
from .model import SHARED, Environments, Gpu, Question
from .pci_ids import pci_id
from .request_keys import ELSEWHERE, KEYS, NAME
from .rows import Arch, DistroRow, GpuRow
from .tables import Tables
from .versions import ConstraintError, check_constraint, label_of, neighbours, starts_with, without_label
from .wording import listed

ARCHITECTURES: dict[str, Arch] = {
    "x86_64": "x86_64",
    "amd64": "x86_64",
    "aarch64": "aarch64",
    "arm64": "aarch64",
    "sbsa": "aarch64",
}
# As people write them: 8x A100, 8 * A100, A100 x 8.
COUNTED_GPU = re.compile(
    r"(?P<first>\d+)\s*[x×*]\s*(?P<model>\S.*)|(?P<before>\S.*?)\s+[x×*]\s*(?P<last>\d+)", re.IGNORECASE
)
OS_NAMES = {"redhat": "rhel", "alma": "almalinux", "rockylinux": "rocky", "oracle": "oraclelinux", "ol": "oraclelinux"}


def read_question(tables: Tables, given: Mapping[str, Any]) -> Question:
    """Return a question, its values looked up; raise InputError for one that is not valid.

    given: os, arch, gpus, gpu_models, python, interpreter, profile, request, environments, ansible_core, suites,
    nvswitches, kernels, driver_owner, installed_driver, take_charge; all may be absent.
    """
    request = _request(tables, given)
    environments = _word("environments", request.pop("environments", None) or given.get("environments") or "one")
    called = _environment_name(request.pop(NAME.name, None), environments)
    excluded = {name for name in FRAMEWORKS if _is_excluded(request.get(name))}
    request = {name: value for name, value in request.items() if name not in excluded}
    if given.get("python") and "python" not in request:
        request["python"] = given["python"]
    # An empty text, of a template perhaps, asks for nothing.
    constraints = {
        name: constraint
        for name, value in request.items()
        if (constraint := _constraint(name, value)) not in ("auto", "")
    }
    constraints.update(_interpreter(given.get("interpreter") or AUTO, constraints.get("python", "")))
    gpus = _gpus(tables, given.get("gpus") or [], _gpu_models(given.get("gpu_models") or {}))
    arch = _arch(given.get("arch"), gpus)
    owner = find_owner(given, gpus, constraints.get("driver_source") == VENDOR)
    question = Question(
        os=find_os(tables, given.get("os")),
        arch=arch,
        gpus=gpus,
        constraints=constraints,
        frameworks=_frameworks(constraints, excluded),
        environments=cast(Environments, environments),
        accelerator="cuda" if gpus else "cpu",
        wheels=arch,
        permitted_build=permitted_build(constraints),
        forward_compat=bool(gpus) and all(gpu.row["forward_compat"] for gpu in gpus),
        has_driver=bool(gpus) or bool({"driver", "driver_source", "kernel_modules"} & set(constraints)),
        ansible_core=given.get("ansible_core"),
        suites=tuple(given["suites"]) if given.get("suites") else None,
        fabric=frozenset() if owner else fabric_services(tables, gpus, given.get("nvswitches")),
        owner=owner,
        own_compiler="gcc" not in constraints,
        environment_name=called,
        kernels=tuple(release for release in given.get("kernels") or () if is_limited(tables, release)),
    )
    _check_known(tables, question)
    return question


def _request(tables: Tables, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request of the profile and the user, the user's word first; raise InputError for a key that is not known."""
    own = given.get("request") or {}
    dropped = {key for name in FRAMEWORKS if _is_excluded(own.get(name)) for key in component(name).reads}
    usual = {name: value for name, value in _profile(tables, given.get("profile")).items() if name not in dropped}
    request = {**usual, **own}
    request = {name: value for name, value in request.items() if value is not None}
    unknown = sorted(set(request) - set(KEYS))
    if unknown and unknown[0] in ELSEWHERE:
        raise InputError("key_of_others", unknown[0], reason=ELSEWHERE[unknown[0]])
    if unknown:
        raise InputError("unknown_request_key", unknown[0], nearest=nearest(unknown[0], KEYS, 1))
    return request


def _environment_name(value: object, environments: str) -> str:
    """Return the name of the one environment; raise InputError for one that is no name of it."""
    if value is None:
        return SHARED
    # A dot would make its lock, <name>.txt, that of conda for another: <name>.conda.txt.
    if not isinstance(value, str) or not re.fullmatch("[A-Za-z][A-Za-z0-9_-]{0,31}", value) or value in FRAMEWORKS:
        raise InputError("wrong_environment_name", NAME.name, value=value)
    if environments == "split":
        raise InputError("name_of_split", NAME.name, value=value)
    return value


def _is_excluded(value: object) -> bool:
    return str(value).lower() in ("none", "false") and value is not None


def _profile(tables: Tables, name: str | None) -> Mapping[str, Any]:
    """Return the request a name stands for."""
    profiles = tables.subjects["profiles"]["profiles"]
    if name and name not in profiles:
        raise InputError("unknown_profile", name, nearest=nearest(name, profiles))
    return profiles[name]["request"] if name else {}


def _frameworks(constraints: Iterable[str], excluded: Container[str]) -> tuple[str, ...]:
    """Return the frameworks to install: those asked for, and PyTorch where nothing else is, or where one is installed with it."""
    constraints = set(constraints)
    named = {name for name in FRAMEWORKS if constraints & set(component(name).reads)}
    for name in (name for name in FRAMEWORKS if name in named and name in excluded):
        key = next(key for key in component(name).reads if key in constraints)
        raise InputError("key_of_excluded", key, component=name)
    if DEFAULT not in excluded and (not named & set(ALONE) or homeless(named)):
        named.add(DEFAULT)
    for name in homeless(named):
        raise InputError("needs_framework", name, others=listed(component(name).beside, "or"))
    return tuple(name for name in FRAMEWORKS if name in named)


def _constraint(name: str, value: Any) -> str:
    if isinstance(value, float):  # 2.10 without quotes is the number 2.1 before this code sees it
        raise InputError("number_without_quotes", f"gpu_stack_request.{name}", value=value, scope=HERE)
    if KEYS[name].choices:
        return _word(name, value)
    if KEYS[name].free:
        return str(value).strip()
    try:
        constraint = check_constraint(value)
    except ConstraintError as error:
        raise InputError("wrong_version", name, value=str(value)) from error
    return constraint


def _word(name: str, value: str) -> str:
    if value not in KEYS[name].choices:
        raise InputError("wrong_word", name, value=value, choices=list(KEYS[name].choices))
    return value


def _interpreter(value: object, python: str) -> Mapping[str, str]:
    """Return the constraint that python_env_python is, or python_env_manager; python: the version asked for."""
    if value == CONDA:
        return {INTERPRETER: CONDA}
    problem = interpreter_problem(value)
    if problem:
        raise InputError(problem.code, problem.subject, **problem.detail, scope=HERE)
    path = str(value)
    if path.startswith("/") and version_of(path) is None and not (python[:1].isdigit() and "." in python):
        raise InputError("interpreter_version", INTERPRETER, value=path, scope=HERE)
    return {} if value == AUTO else {INTERPRETER: path}


def _arch(value: object, gpus: Iterable[Gpu]) -> Arch:
    """Return the architecture that is given, else that of the processors on the GPUs' boards, else x86_64; raise InputError."""
    boards = [gpu.row["arch"] for gpu in gpus if "arch" in gpu.row]
    try:
        return ARCHITECTURES[str(value or [*boards, "x86_64"][0]).lower()]
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
    counted = COUNTED_GPU.fullmatch(str(shown).strip())
    if counted:
        raise InputError(
            "counted_gpu", shown, count=counted["first"] or counted["last"], model=counted["model"] or counted["before"]
        )
    raise InputError("unknown_gpu", shown, nearest=nearest(shown, [one["model"] for one in tables.rows("gpus")]))


def _check_known(tables: Tables, question: Question) -> None:
    """Refuse a version that was not published, and a driver that is not there: mistakes in writing, not conflicts."""
    if question.owner and question.has_driver and question.owner.version is None:
        vgpu = next((gpu.model for gpu in question.gpus if gpu.row.get("vgpu")), None)
        raise InputError("no_guest_driver", vgpu) if vgpu else InputError("no_driver_left", question.owner.name)
    for one in COMPONENTS:
        constraint = question.constraints.get(one.name)
        mistake = _wrong_version(tables, question, one, constraint) if constraint else None
        mistake = mistake or one.mistake(tables, question)
        if mistake:
            raise mistake


def _wrong_version(tables: Tables, question: Question, made: Component, constraint: str) -> InputError | None:
    """Return the mistake that a constraint names a build that does not exist, or that no version fits it."""
    label, named = made.keys[0].label, label_of(constraint)
    if named and label is None:
        return InputError("no_builds", made.name, value=constraint)
    wrong = _unknown_version(tables, question, made, constraint)
    if not wrong or not named or label is None:
        return wrong
    free = replace(question.without_constraints(*question.constraints), owner=None)
    others = {
        label(one): None
        for accelerator in ("cuda", "cpu")
        for one in made.candidates(
            tables, replace(free, constraints={made.name: without_label(constraint)}, accelerator=accelerator)
        )
    }
    return InputError("unknown_build", made.name, value=constraint, builds=", ".join(others)) if others else wrong


def _unknown_version(tables: Tables, question: Question, made: Component, constraint: str) -> InputError | None:
    """Return the mistake that no version of the tables fits a constraint, with those next to it."""
    free = replace(question.without_constraints(*question.constraints), owner=None)
    asked = replace(free, constraints={made.name: constraint}, accelerator="cuda")
    if not made.published or made.candidates(tables, asked):
        return None
    # Where nothing is asked for, some components have no candidate.
    any_of_them = replace(free, constraints={made.name: "latest"})
    known = dict.fromkeys(one.version for one in made.candidates(tables, any_of_them) if not one.absent)
    return InputError("unknown_version", made.name, value=constraint, nearest=_nearest_versions(constraint, known))


def _nearest_versions(constraint: str, known: Iterable[str]) -> str:
    """Return the known versions next to the one that a constraint, maybe a range, names first."""
    named = re.search(r"\d+(\.\d+)*", constraint)
    return ", ".join(neighbours(named[0], known)) if named else nearest(constraint, known)
