# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs that Slurm starts on a node for its health: whether they are asked for, their files, and the keys that name them.

The programs themselves are in module_utils/slurm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ....module_utils.machine.program_digest import digest
from ....module_utils.settings.slurm import OURS, PROGRAMS, SCRIPTS
from ...documents.comparison import Comparison, Remedy, compared
from ...documents.slurm import SlurmNode
from ...launch.program import program_files
from ..subject import Node
from .request import EXTERNAL, NODES, PRESENT, given, is_node_name, state_of

COMPONENT, RECORD = "slurm", "slurm_programs"
# Of slurm.conf(5). A job that a node refuses goes to another one, instead of being held.
KEYS = {
    "HealthCheckProgram": f"{PROGRAMS}/check",
    "HealthCheckInterval": "60",
    "HealthCheckNodeState": "CYCLE",
    "Prolog": f"{PROGRAMS}/prolog",
    "Epilog": f"{PROGRAMS}/epilog",
    "SchedulerParameters": "nohold_on_prolog_fail",
}
# Slurm gives its programs no PATH. One that crashes, or is not done in time, says nothing about the node: only 3 refuses it.
SCRIPT = """\
#!/bin/sh
{head}.
PATH=${{PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}}
export PATH
python=/usr/bin/python3
[ -x $python ] || python=/usr/libexec/platform-python
{command}
"""
COMMANDS = {
    # As HealthCheckProgram it has no argument, and succeeds.
    "check": 'timeout -k 2 55 $python -I -B {directory} check {name} "$@" || [ $# -eq 0 ]',
    "prolog": "timeout -k 2 30 $python -I -B {directory} prolog\n[ $? -ne 3 ]",
    "epilog": "timeout -k 2 50 $python -I -B {directory} epilog\n[ $? -ne 3 ]",
}


def is_asked(variables: Mapping[str, Any]) -> bool:
    """Return True if a node's health is watched, and its Slurm is to know."""
    watched = str(variables.get("health_state")) == "present" and state_of(variables) in (EXTERNAL, PRESENT)
    return watched and boolean(given(variables)["slurm_health"], strict=False)


def is_expected(node: Node) -> bool:
    """Return True if a node has the programs: all nodes of a cluster have them where one of them asks, since slurm.conf is one for all; and
    where a cluster of others names them.
    """
    state, known = state_of(node.variables), node.known
    others = [name for name in node.groups.get(NODES) or () if name in known and state_of(known[name]) == state]
    named = state == EXTERNAL and bool((node.facts.get("gpu_slurm") or {}).get("named"))
    return is_asked(node.variables) or named or (state == PRESENT and any(is_asked(known[name]) for name in others))


def files(name: str) -> list[dict[str, str]]:
    """Return the files on the node that Slurm calls by this name."""
    scripts = {script: _script(script, name) for script in SCRIPTS}
    record = {"path": f"/var/lib/allreduce/{RECORD}.json", "content": '{"format": 1}\n'}
    made = [{"path": f"{PROGRAMS}/{script}", "content": text, "mode": "0755"} for script, text in scripts.items()]
    return [record, *program_files("slurm.program", PROGRAMS), *made]


def _script(script: str, name: str) -> str:
    command = COMMANDS[script].format(directory=PROGRAMS, name=name)
    return SCRIPT.format(head=OURS, command=command)


def compare(measured: SlurmNode) -> list[Comparison]:
    """Return the comparison of the programs on a node with those of this release."""
    if not is_node_name(measured.name):
        return []
    texts = {one["path"].removeprefix(f"{PROGRAMS}/"): one["content"] for one in files(measured.name)[1:]}
    wanted, seen = digest(texts), measured.programs
    return [
        compared(COMPONENT, PROGRAMS, wanted[:12], seen[:12] if seen else None, seen == wanted, Remedy.APPLY, "health")
    ]
