# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse a user's request to role health, and decide whether a node has it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ....module_utils.health import installed, program_options
from ....module_utils.machine.program_digest import digest
from ...documents.comparison import Comparison, Remedy, Status, compared
from ...launch.program import program_files
from ..options import as_list
from ..subject import Node, Subject

COMPONENT = "health"
TIMER = "allreduce-health.timer"
# The defaults of the role's variables (a test compares).
DEFAULTS: dict[str, Any] = {
    "health_state": "absent",
    "health_interval": 60,
    "health_timeout": 45,
    "health_gpu_count": 0,
    "health_skip_checks": [],
    "health_thresholds": {},
    "health_textfile_directory": "/var/lib/prometheus/node-exporter",
    "health_textfile_create": False,
    "health_hook": "",
    "health_hook_mode": "shadow",
    "health_hook_timeout": 60,
    "health_hook_per_day": 3,
    "health_hook_per_week": 5,
}
# The program's options that are variables of their own.
OPTIONS = {
    "seconds": "health_timeout",
    "textfile_directory": "health_textfile_directory",
    "hook": "health_hook",
    "hook_mode": "health_hook_mode",
    "hook_seconds": "health_hook_timeout",
    "hook_per_day": "health_hook_per_day",
    "hook_per_week": "health_hook_per_week",
}
PATHS = ("health_textfile_directory", "health_hook")


def answer(variables: Mapping[str, Any], declaration: str | None = None) -> dict[str, Any]:
    """Return {options: of the program, problems: sentences, former: directory of the metrics so far, where it is another one, or ""}.

    declaration: what the program on the node was declared with, if there is one.
    """
    given = {**DEFAULTS, **variables}
    options = {name: _typed(DEFAULTS[variable], given[variable]) for name, variable in OPTIONS.items()}
    thresholds, wrong = _thresholds(given["health_thresholds"])
    options |= {"skip_checks": as_list(given["health_skip_checks"]), **thresholds}
    if int(given["health_gpu_count"]):
        options["gpu_count"] = int(given["health_gpu_count"])
    declared = _declared(declaration)
    former = declared.get("textfile_directory") if isinstance(declared, dict) else None
    differs = isinstance(former, str) and former.startswith("/") and former != options["textfile_directory"]
    return {"options": options, "problems": [*_problems(given, options), *wrong], "former": former if differs else ""}


def _typed(default: object, value: object) -> object:
    return int(str(value)) if isinstance(default, int) else str(value)


def _thresholds(given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the thresholds that are set, as numbers and lists which checks compare, and sentences about those that are none."""
    known = {name: {**option, "default": None} for name, option in program_options.THRESHOLDS.items()}
    found = {name: value for name, value in given.items() if value is not None}
    result = ArgumentSpecValidator(known).validate({name: found[name] for name in found if name in known})
    values = {name: result.validated_parameters.get(name, value) for name, value in found.items()}
    return values, [f"health_thresholds is wrong: {message}." for message in result.error_messages]


def _problems(given: Mapping[str, Any], options: Mapping[str, Any]) -> Iterator[str]:
    try:
        program_options.parse(json.dumps(options))
    except ValueError as error:
        yield f"health_skip_checks or health_thresholds {error}."
    for name in given["health_thresholds"]:
        if name not in program_options.THRESHOLDS:
            yield f"health_thresholds has {name}, which no check uses: docs/health.md lists them."
    for name in PATHS:
        value = str(given[name])
        if value and (not value.startswith("/") or any(sign in value for sign in " \t\n%\\\"'")):
            yield f"{name} is {value}: it has to be an absolute path without spaces or special characters."
    for name in ("health_interval", "health_timeout", "health_hook_timeout"):
        if int(given[name]) < 1:
            yield f"{name} is {given[name]}: it has to be at least 1."


def comparisons(node: Node) -> list[Comparison]:
    """Return the differences between what is watched and what is to be; nothing for a node that neither is nor is to be watched."""
    variables, state = node.variables, node.state
    found = state.get("health")
    if str(variables.get("health_state", "absent")) != "present":
        there = [Comparison(COMPONENT, "timer", "absent", "present", Status.UNWANTED, Remedy.REMOVE, "program")]
        return there if found else []
    known = "health" in state
    here = found or {}
    program = {file["path"].removeprefix(installed.DIRECTORY + "/"): file["content"] for file in
               program_files("health.health_program", installed.DIRECTORY)}  # fmt: skip
    wanted = digest(program)
    declared = _declared(here.get("declaration"))
    agrees = declared == answer(variables)["options"] if known else None
    timer = (state.get("services") or {}).get(TIMER) or {}
    runs = timer["enabled"] and timer["active"] if timer.get("active") is not None else None
    seen = here.get("program")
    return [
        compared(COMPONENT, "program", wanted[:12], seen[:12] if seen else None, seen == wanted if known else None,
                 Remedy.INSTALL, "program"),
        compared(COMPONENT, "declaration", "as declared", "other options" if declared is not None else None, agrees,
                 Remedy.INSTALL, "program"),
        compared(COMPONENT, TIMER, "enabled, running", "enabled, running" if runs else "stopped or disabled", runs,
                 Remedy.SERVICE, "service"),
    ]  # fmt: skip


def _declared(text: str | None) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None


SUBJECT = Subject(name="health", defaults=DEFAULTS, compare=comparisons, units=(TIMER,))
