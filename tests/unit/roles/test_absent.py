# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a role puts on a node, its state absent takes away: each task that makes something is met by one that names the same thing."""

from __future__ import annotations

import re
from functools import cache

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects import BY_NAME

from tests.unit.roles.test_structure import ROLES, tasks_of

# Modules that make something, and the option that says what.
MAKES = {
    "allreduce.gpu.config_files": "files", "allreduce.gpu.packages": "name", "allreduce.gpu.service": "name", "allreduce.gpu.subject": "name",
    "allreduce.gpu.ssh_keys": "directory", "allreduce.gpu.download": "path", "ansible.builtin.blockinfile": "path",
    "ansible.builtin.copy": "dest", "ansible.builtin.file": "path", "ansible.builtin.get_url": "dest", "ansible.builtin.lineinfile": "path",
    "ansible.builtin.systemd_service": "name", "ansible.builtin.template": "dest", "ansible.builtin.unarchive": "dest",
    "ansible.builtin.user": "name",
}  # fmt: skip
# What stays although its role is absent, or goes without being named, and why.
STAYS = {
    "monitoring": {
        "__monitoring_answer": "the removal finds the services and files of whatever was asked for before",
        "__monitoring_content": "so it does these",
        "monitoring": "the packages may be somebody else's by now",
        "dcgm": "it is part of the plan",
    },
    "nvidia_driver": {
        "secure-boot": "the key stays enrolled",
        "__nvidia_driver_archive": "module kernel_module_archive removes it once it is unpacked",
    },
    "slurm": {
        "__slurm_answer": "__slurm_removed names the files of whatever was asked for before; scenario 87 finds none left",
        "__slurm_programs": "programs_removed.yml takes their whole directory and the record; scenario 87 finds none left",
    },
}


@cache
def variables(role):
    """The role's internal variables with their values on every family of systems."""
    found = {}
    for path in sorted((ROLES / role / "vars").glob("*.yml")):
        for name, value in (yaml.safe_load(path.read_text(encoding="utf-8")) or {}).items():
            found.setdefault(name, []).append(value)
    return found


def texts(value):
    """The texts in a value of YAML that can name a thing."""
    if isinstance(value, dict):
        value = [one for key, one in value.items() if key not in ("content", "group", "mode", "owner", "state")]
    return [text for one in value for text in texts(one)] if isinstance(value, list) else [str(value)]


def words(role, value, seen=frozenset()):
    """Texts without a template, and names of variables and paths in the others and in the variables that they name."""
    found, known = set(), variables(role)
    for text in texts(value):
        templated = "{" in text or text.startswith("__")
        found |= (
            {*re.findall(rf"(?:__)?{role}_\w+", text), *re.findall(r"/[\w./@{} -]*\w", text)} if templated else {text}
        )
    for name in found & set(known) - seen:
        found |= words(role, known[name], seen | {name})
    return found - {f"{role}_state"}


def things(role, module, given, loop):
    """What a task makes, each thing by all its names: variables that are added up are several things."""
    if module == "allreduce.gpu.subject":
        subject = BY_NAME[given["name"]]
        return [{f"{subject.applied_by} {subject.options.get('record', '')}", "allreduce.gpu.subject "}]
    named = given.get(MAKES[module], "")
    named = named.replace("item", loop) if isinstance(named, str) else named
    parts = re.findall(r"__\w+", named) if isinstance(named, str) else named
    return [words(role, part) for part in parts or [named]]


def left(role):
    """What tasks of a role make and none takes away."""
    taken, made = set(), []
    for path in sorted((ROLES / role / "tasks").glob("*.yml")):
        for task in tasks_of(path):
            module = next((name for name in task if name in MAKES or name.startswith("allreduce.gpu.")), "")
            given = task.get(module) or {}
            either = f"{role}_state" in str([given, words(role, given)]) or "{{ 'present' if" in str(given.get("state"))
            off = "absent" in path.stem or "absent" in str(given)
            if off or either:
                taken |= words(role, [given, task.get("loop", ""), list(task.get("vars", {}).values())])
                taken |= {f"{module} {given.get('record', '')}"} if "state" in given else set()
            if module in MAKES and not off and not (module == "ansible.builtin.file" and "state" not in given):
                made += [(module, thing) for thing in things(role, module, given, str(task.get("loop")))]
    # A package takes its units with it.
    packaged = {name for module, thing in made if module == "allreduce.gpu.packages" for name in thing & taken}
    return [
        (module, sorted(thing))
        for module, thing in made
        if not thing & taken and not (packaged and module.endswith("service"))
    ]


def switched_off():
    """Roles that can be absent."""
    for path in sorted(ROLES.glob("*/meta/argument_specs.yml")):
        specs = yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"]["main"].get("options") or {}
        role = path.parents[1].name
        if "absent" in (specs.get(f"{role}_state") or {}).get("choices", ()):
            yield role


@pytest.mark.parametrize("role", [*switched_off()])
def test_what_a_role_makes_goes_with_it(role):
    stays, found = set(STAYS.get(role, ())), left(role)
    strays = [(module, thing) for module, thing in found if not stays & set(thing)]
    assert not strays, f"state absent leaves these: {strays}"
    idle = stays - {name for _module, thing in found for name in thing}
    assert not idle, f"nothing of this stays: {idle}"
