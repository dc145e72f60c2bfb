# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm as plain values: variables and facts in, what modules and checks need out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ...cluster.address import READS as ADDRESS
from ...documents.comparison import Comparison
from ...documents.parsing import parse
from ...documents.slurm import SlurmNode
from ...problems import text
from ...problems.problem import Problem, ProblemError
from ..subject import Node, Subject
from . import health, lines
from .compare import (
    compare_asked,
    compare_lines,
    compare_refused,
    compare_services,
    compare_unmeasured,
    compare_unwanted,
)
from .decide import decide_files, model_of
from .installed import is_installed
from .programs import ON_CONTROLLER, ON_NODE
from .request import CONTROLLERS, DEFAULTS, EXTERNAL, LOGIN_NODES, NODES, PRESENT, given, problems, request, state_of
from .request import misfits as request_misfits
from .sentences import SENTENCES

SWITCH = "slurm_state"
MEMBERS = (NODES, CONTROLLERS, LOGIN_NODES)
# Whether verification runs a job on each node, and whose.
WANTS_JOB, USER = "verify_slurm_job", "cluster_ssh_user"
# What is read of the nodes: what each asks for itself, where it is, and what was measured of it.
READS_OF_OTHERS = (
    *DEFAULTS,
    "firewall_state",
    "health_state",
    *ADDRESS,
    *(f"ansible_facts.{name}" for name in ("distribution", "distribution_version", "os_family", "gpu_stack.os")),
    *(f"ansible_facts.{name}" for name in ("gpu_node.driver", "gpu_node.gpus", "gpu_slurm")),
    "ansible_facts.gpu_node_state.records",
)


def hosts_of(groups: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the nodes, then the hosts that control them, then those that users log in to."""
    return list(dict.fromkeys(name for group in MEMBERS for name in groups.get(group) or ()))


def concerned(known: Mapping[str, Mapping[str, Any]], groups: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the hosts that say what they have to do with Slurm; where none says anything, no host is even contacted."""
    return [name for name in hosts_of(groups) if (known.get(name) or {}).get(SWITCH)]


def wants_job(variables: Mapping[str, Any]) -> bool:
    """Return True if verification is to run a job on the host."""
    return boolean(variables.get(WANTS_JOB) or False, strict=False)


def questions(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of module slurm_facts."""
    mine = given(variables)
    user = str(variables.get(USER) or "") if wants_job(variables) else ""
    return {
        "directory": str(mine["slurm_directory"]),
        "name": str(mine["slurm_node_name"]),
        **({"job_user": user} if user else {}),
    }


def comparisons(node: Node) -> list[Comparison]:
    """Return every comparison of what Slurm is told on a node; raise DocumentError for facts of the wrong shape."""
    state = state_of(node.variables)
    if state not in (EXTERNAL, PRESENT):
        return compare_unwanted(node.has_record("slurm") or node.has_record(health.RECORD) or is_installed(node.facts))
    if node.name not in (node.groups.get(NODES) or ()):
        return []
    is_judged = node.facts.get("gpu_slurm") and node.facts.get("gpu_node")
    if not is_judged or any(True for _one in problems(node.variables)):
        return compare_unmeasured()
    try:
        found = model_of(node.name, node.known[node.name])
    except ProblemError as error:
        return compare_refused(text.describe_all(error.problems, SENTENCES).rstrip("."))
    measured = parse(SlurmNode, node.facts["gpu_slurm"], "gpu_slurm")
    said = compare_lines(lines.texts(found, request(node.variables).autodetect), measured.lines)
    if health.is_expected(node):
        said += health.compare(measured)
    asked = compare_asked(measured.asked, len(found.devices), wants_job(node.variables), state == PRESENT)
    services = compare_services(ON_NODE, node.state.get("services") or {}) if state == PRESENT else []
    return [*said, *services, *asked]


def misfits(node: Node) -> Iterator[Problem]:
    """Yield the problems with what the inventory lacks."""
    return request_misfits(node.groups, node.variables)


SUBJECT = Subject(
    name="slurm",
    defaults=DEFAULTS,
    on=(EXTERNAL, PRESENT),
    problems=problems,
    misfits=misfits,
    compare=comparisons,
    members=MEMBERS,
    units=tuple(dict.fromkeys((*ON_CONTROLLER, *ON_NODE))),
    reads=(WANTS_JOB,),
    reads_of_others=READS_OF_OTHERS,
    sentences=SENTENCES,
    facts="allreduce.gpu.slurm_facts",
    question=questions,
    probed="verify",
    applied_by="allreduce.gpu.tuning",
    options={"record": "slurm"},
    decide=decide_files,
    refusal="The files of {host} for Slurm stay as they are. ",
)
