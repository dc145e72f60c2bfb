# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The monitoring of one host as plain values: variables and facts in, what the role and the checks need out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...documents.comparison import Comparison
from ...problems.problem import Problem
from ..subject import Node, Subject
from . import configuration, content, grafana, units
from .compare import compare_monitoring, compare_unmeasured, compare_unwanted
from .host import Groups, Host, Variables, host_of, refused
from .password import is_possible, password_hash
from .programs import known_services, planned_dcgm
from .request import CONTROLLERS, DEFAULTS, NODES, READS_OF_OTHERS, hosts_of, lacking, problems, request
from .sentences import SENTENCES


def is_watched(name: str, groups: Groups) -> bool:
    """Return True if the role is about a host at all."""
    return name in hosts_of(groups)


def is_recorded(name: str, known: Variables, facts: Mapping[str, Any]) -> bool:
    """Return True if there is anything of the role's to take back on a host.

    A host that has not been measured, such as a controller, is looked at where another host of the groups has a record; so hosts
    that never had any of it are not even contacted.
    """
    state = facts.get("gpu_node_state")
    if state is not None:
        return "monitoring" in (state.get("records") or ())
    others = (variables for other, variables in known.items() if other != name)
    states = ((one.get("ansible_facts") or {}).get("gpu_node_state") or {} for one in others)
    return any("monitoring" in (one.get("records") or ()) for one in states)


def to_monitor(known: Variables, groups: Groups, state: str) -> list[str]:
    """Return the hosts of the groups on which role monitoring has anything to do. state: that of the play, where a host has none."""
    members = {name: known[name] for name in dict.fromkeys(hosts_of(groups)) if name in known}

    def has_work(name: str) -> bool:
        asked = {state, str(members[name].get("monitoring_state") or state)}
        facts = members[name].get("ansible_facts") or {}
        return asked != {"absent"} or bool(planned_dcgm(facts)) or is_recorded(name, members, facts)

    return [name for name in members if has_work(name)]


def answer(name: str, known: Variables, groups: Groups, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer of the role on a host, without secrets; ``problems``, and nothing else where there are any."""
    found = list(problems(known[name]))
    host = None if found else host_of(name, known, groups, facts)
    if isinstance(host, Problem):
        found = [host]
    elif host is not None:
        found = refused(host, groups)
        if not is_possible():
            found.append(Problem("monitoring_no_bcrypt", "bcrypt"))
    if found or not isinstance(host, Host):
        return {"problems": found}
    programs = host.programs.values()
    return {
        "problems": [],
        "units": content.started(host),
        "repository": content.repository(host),
        "packages": sorted({one.package for one in programs}),
        "services": [{"name": one.service, "unit": units.path(one)} for one in programs],
    }


def files(name: str, known: Variables, groups: Groups, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return {files, secrets: words in them that are not for logs}; none for a host with problems."""
    host = None if any(True for _one in problems(known[name])) else host_of(name, known, groups, facts)
    if not isinstance(host, Host) or refused(host, groups) or not is_possible():
        return {"files": [], "secrets": []}
    hashed = password_hash(host.wanted.password, host.name)
    hidden = [
        host.wanted.password,
        grafana.literal(host.wanted.password),
        hashed,
        *configuration.secrets(host.wanted.alertmanager),
    ]
    wanted = [*content.open_files(host), *content.closed_files(host, hashed)]
    return {"files": content.told(host, wanted), "secrets": hidden}


def comparisons(node: Node) -> list[Comparison]:
    """Return every comparison of a host's monitoring; ``__verify_monitoring`` tells which files would be changed."""
    if str(node.variables.get("monitoring_state") or "absent") != "present":
        return compare_unwanted(node.has_record("monitoring"))
    seen = node.variables.get("__verify_monitoring") or {}
    found = answer(node.name, node.known, node.groups, node.facts)
    if found["problems"] or "changed_paths" not in seen:
        return compare_unmeasured()
    services = [one["name"] for one in found["services"]]
    return compare_monitoring(services, seen["changed_paths"], node.state.get("services") or {})


def misfits(node: Node) -> Iterator[Problem]:
    """Yield the values that a host lacks that is to be watched; values that are not valid are told one by one."""
    given = {name: value for name, value in node.variables.items() if name in DEFAULTS and value is not None}
    if given.get("monitoring_state") != "present" or any(True for _one in problems(given)):
        return
    yield from lacking(request(given))
    if not node.groups.get(CONTROLLERS):
        yield Problem("monitoring_no_controller", CONTROLLERS)


SUBJECT = Subject(
    name="monitoring",
    defaults=DEFAULTS,
    problems=problems,
    misfits=misfits,
    compare=comparisons,
    members=(NODES, CONTROLLERS),
    units=known_services(),
    reads_of_others=READS_OF_OTHERS,
    sentences=SENTENCES,
)
