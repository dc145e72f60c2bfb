# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refuse input that cannot be meant; documented in plugins/modules/preflight.py. Opens no connection."""

from __future__ import annotations

import getpass
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ansible import constants as C  # noqa: N812 (its usual name)
from ansible import context
from ansible.errors import AnsibleParserError
from ansible.plugins.action import ActionBase
from ansible.release import __version__ as ansible_version
from ansible.utils.vars import load_extra_vars

from ..plugin_utils.node.screen import show_errors
from ..plugin_utils.planning.variables import PLAIN, may_be_template
from ..plugin_utils.preflight.check import (
    all_problems,
    benchmark_problems,
    measured_problems,
    planning_problems,
    to_measure,
    training_problems,
)
from ..plugin_utils.preflight.controller import core_problems, settings_problems
from ..plugin_utils.preflight.inventory import MOLECULE_TAGS, SPECIAL_TAGS, tag_problems
from ..plugin_utils.preflight.playbook import tags_of
from ..plugin_utils.preflight.runs import Run, claim, node_address, process_start
from ..plugin_utils.preflight.unreadable import unreadable
from ..plugin_utils.preflight.variables import declared_options
from ..plugin_utils.preflight.world import UNRESOLVED, Resolve, World
from ..plugin_utils.problems.problem import Problem
from ..plugin_utils.subjects.sentences import describe, describe_all, told
from ..plugin_utils.workers import prepare

prepare()  # every playbook begins with this action
COLLECTION = Path(__file__).absolute().parents[2]
_OPTIONS = {
    "ignore": {"type": "list", "elements": "str", "default": []},
    **{
        name: {"type": "bool", "default": False}
        for name in ("measured", "exclusive", "planning", "training", "benchmark")
    },
}


class ActionModule(ActionBase):
    """Collect what the user wrote, have it checked, and make one message of the problems."""

    TRANSFERS_FILES = False
    BYPASS_HOST_LOOP = True
    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Look at the input, and show what is wrong with it."""
        super().run(tmp, task_vars)
        problems, result = self._found(task_vars or {})
        show_errors(self._display, map(told, problems))
        return result

    def _found(self, variables: dict[str, Any]) -> tuple[Sequence[Problem], dict[str, Any]]:
        """Make one pass over all hosts of the inventory."""
        unsafe = core_problems(ansible_version)
        if unsafe:
            return unsafe, _result(unsafe)
        _validation, arguments = self.validate_argument_spec(_OPTIONS)
        try:
            world = _world(variables, load_extra_vars(self._loader))
        except AnsibleParserError as error:
            problem = unreadable(error)
            if problem is None:
                raise
            return [problem], _result([problem])
        roles = declared_options(self._specs())
        resolve = self._resolver(world, variables)
        if arguments["measured"]:
            problems = measured_problems(world, roles, resolve, self._templar.is_template)
            warnings: list[Problem] = []
        else:
            problems, warnings = all_problems(world, roles, resolve, arguments["ignore"])
            problems += settings_problems(bool(getattr(C, "INJECT_FACTS_AS_VARS", False)))
            problems += self._tag_problems(variables)
        if arguments["exclusive"] and not problems and not self._task.check_mode:
            found, told = _claim(world)
            problems, warnings = problems + found, warnings + told
        if arguments["planning"] and not problems:
            problems += planning_problems(world, roles, resolve)
        if arguments["training"] and not problems:
            places = [os.environ.get("PWD", "."), variables["playbook_dir"], str(COLLECTION)]
            problems += training_problems(world, roles["train"], resolve, places, variables["ansible_forks"])
        if arguments["benchmark"] and not problems:
            problems += benchmark_problems(world, roles["benchmark"], resolve, variables["ansible_forks"])
        result = _result(problems, warnings, len(world.names()))
        if arguments["planning"] and not problems:
            everyone = resolve(None, variables.get("plan_measure", False))
            result["ansible_facts"] = {"gpu_plan_measures": to_measure(world, resolve, everyone)}
        return problems, result

    def _specs(self) -> dict[str, Any]:
        paths = sorted((COLLECTION / "roles").glob("*/meta/argument_specs.yml"))
        return {path.parts[-3]: self._loader.load_from_file(str(path)) or {} for path in paths}

    def _tag_problems(self, variables: Mapping[str, Any]) -> list[Problem]:
        """Read the playbooks again only where tags were named, to run or to skip."""
        skipped = set(variables.get("ansible_skip_tags") or []) - MOLECULE_TAGS
        tags = [*(variables.get("ansible_run_tags") or []), *sorted(skipped)]
        if set(tags) <= SPECIAL_TAGS:
            return []
        return tag_problems(tags, tags_of(context.CLIARGS["args"], self._loader))

    def _resolver(self, world: World, variables: Mapping[str, Any]) -> Resolve:
        """Return a function that resolves the templates in a value for a host, or says that it cannot yet."""

        def resolve(host: str | None, value: Any) -> Any:
            if value is not None and not isinstance(value, PLAIN):
                return UNRESOLVED
            if not may_be_template(value):
                return value  # before the costly step, as a rule
            known = {**world.hosts[host], "hostvars": variables["hostvars"]} if host else variables
            return _resolved(self._templar.copy_with_new_env(available_variables=known), value)

        return resolve


def _result(problems: Sequence[Problem], warnings: Sequence[Problem] = (), checked: int = 0) -> dict[str, Any]:
    result: dict[str, Any] = {
        "changed": False,
        "problems": [{"code": one.code, "subject": one.subject} for one in problems],
        "checked": checked,
        "warnings": [describe(one) for one in warnings],
    }
    return {**result, "failed": True, "msg": describe_all(problems)} if problems else result


def _resolved(templar: Any, value: Any) -> Any:
    """Resolve as much of a dictionary as can be."""
    try:
        return templar.template(value)
    except Exception:  # whatever a filter or a lookup raises without facts
        if not isinstance(value, dict):
            return UNRESOLVED
    parts = {key: _resolved(templar, one) for key, one in value.items()}
    return {key: one for key, one in parts.items() if one is not UNRESOLVED}


def _claim(world: World) -> tuple[list[Problem], list[Problem]]:
    """Return the problems of noting this run, and as warnings why it could not be noted: nothing else needs that file."""
    directory = Path(C.config.get_config_value("ANSIBLE_HOME")) / "allreduce" / "runs"
    try:
        return claim(directory, _run(world)), []
    except OSError as error:
        return [], [Problem("run_not_noted", str(directory), {"error": error.strerror})]


def _run(world: World) -> Run:
    """Describe the run that this worker belongs to."""
    pid = os.getppid()
    return Run(
        machine=platform.node(),
        user=_user(),
        pid=pid,
        began=process_start(pid),
        since=datetime.now().astimezone().isoformat(" ", "seconds"),
        nodes={name: node_address(name, world.hosts[name]) for name in world.playing},
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name; Python says so in one way or the other
        return str(os.getuid())


def _world(variables: Mapping[str, Any], command_line: Mapping[str, Any]) -> World:
    hosts = {name: variables["hostvars"].raw_get(name) for name in variables["groups"]["all"]}
    elsewhere = set(command_line).union(*hosts.values())
    sources = variables.get("ansible_inventory_sources") or []
    return World(
        hosts=hosts,
        groups=variables["groups"],
        playing=variables.get("ansible_play_hosts_all") or [],
        limit=variables.get("ansible_limit"),
        sources=sources,
        missing_sources=[one for one in sources if one.startswith("/") and not Path(one).exists()],
        command_line=command_line,
        play={name: value for name, value in variables.items() if name not in elsewhere},
    )
