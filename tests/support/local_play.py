# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Roles run on this machine with facts that are given, and what they executed here."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Run:
    """The exit status, the output, and [{role, module}] of what ran as on a host."""

    status: int
    output: str
    executions: list


def run_roles(place: Path, roles, facts, *options, groups=(), hosts=("node",)) -> Run:
    """Include ROLES one after another on a host with FACTS, then ping it, which shows that executions are seen.

    roles: names, or name/part for one file of a role's tasks with the role's variables, without what it depends on
    options: further words for ansible-playbook; groups: those that the host is in; hosts: where there are several
    """
    tasks = [{"ansible.builtin.set_fact": {"cacheable": True, **facts}}]
    for role in roles:
        name, _slash, part = role.partition("/")
        if part:
            tasks.append({"ansible.builtin.include_vars": str(CHECKOUT / "roles" / name / "vars" / "main.yml")})
            tasks.append({"ansible.builtin.include_tasks": str(CHECKOUT / "roles" / name / "tasks" / f"{part}.yml")})
        else:
            tasks.append({"ansible.builtin.include_role": {"name": f"allreduce.gpu.{name}"}})
    tasks.append({"ansible.builtin.ping": {}})
    (place / "play.yml").write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]), "utf-8")
    host = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    children = {group: {"hosts": dict.fromkeys(hosts, {})} for group in groups}
    inventory = {"all": {"hosts": dict.fromkeys(hosts, host), "children": children}}
    (place / "hosts.json").write_text(json.dumps(inventory), "utf-8")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
        "ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".collections"),
        "ANSIBLE_CALLBACK_PLUGINS": str(CHECKOUT / "tests" / "bench" / "callback_plugins"),
        "ANSIBLE_CALLBACKS_ENABLED": "executions",
        "ALLREDUCE_COUNT_LOCAL": "1",
        "ALLREDUCE_EXECUTIONS": str(place / "executions.jsonl"),
        "ANSIBLE_NOCOLOR": "1",
    }
    command = [sys.executable, "-m", "ansible", "playbook", "-i", "hosts.json", "play.yml", *options]
    process = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    record = place / "executions.jsonl"
    executions = [json.loads(line) for line in record.read_text("utf-8").splitlines()] if record.exists() else []
    return Run(process.returncode, process.stdout + process.stderr, executions)
