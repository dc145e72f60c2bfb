# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host of the monitoring: what is asked for it, which programs it gets, and what is known of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...problems.problem import Problem
from .grafana import is_installed
from .peers import Peers, peers
from .programs import USER, Program, Source, dcgm, has_dcgm_packages, planned_dcgm, source_of, system_of
from .request import CONTROLLERS, NODES, Request, lacking, request

Variables = Mapping[str, Mapping[str, Any]]
Groups = Mapping[str, Iterable[str]]


@dataclass(frozen=True)
class Host:
    """programs: those that it gets, by their part; shaped: whether role qos shapes its traffic; dcgm_declared: whether the user has
    said something of NVIDIA's exporter.
    """

    name: str
    wanted: Request
    source: Source
    facts: Mapping[str, Any]
    peers: Peers
    programs: Mapping[str, Program]
    shaped: bool = False
    dcgm_declared: bool = False

    @property
    def address(self) -> str | None:
        """Return where its services answer."""
        return next(
            (one.address for one in (*self.peers.nodes, *self.peers.controllers) if one.name == self.name), None
        )

    @property
    def group(self) -> str:
        """Return the group that may read secrets: the group of the services, once the packages have made it."""
        installed = (self.facts.get("gpu_node_state") or {}).get("packages") or {}
        return USER if any(one.package in installed for one in self.programs.values()) else "root"


def host_of(name: str, known: Variables, groups: Groups, facts: Mapping[str, Any]) -> Host | Problem:
    """Return a host, or why there is no monitoring for its system."""
    wanted, system = request(known[name]), system_of(facts)
    source = source_for(name, wanted, system)
    if isinstance(source, Problem):
        return source
    nodes = [one for one in groups.get(NODES, ()) if one in known]
    nvidia = [one for one in nodes if has_dcgm(known[one], facts if one == name else None)]
    programs: dict[str, Program] = {}
    if name in groups.get(CONTROLLERS, ()):
        programs |= {part: source.programs[part] for part in ("prometheus", "alertmanager")}
    if name in groups.get(NODES, ()):
        programs["node"] = source.programs["node"]
        programs |= {"dcgm": dcgm()} if name in nvidia else {}
    state, shaped = str(known[name].get("monitoring_state")), str(known[name].get("qos_state")) == "present"
    declared = "monitoring_dcgm_exporter" in known[name]
    return Host(name, wanted, source, facts, peers(known, groups, state, nvidia), programs, shaped, declared)


def source_for(name: str, wanted: Request, system: Mapping[str, str]) -> Source | Problem:
    """Return where a host has Prometheus' programs from, or why from nowhere; system: {family, id, version}."""
    source, words = source_of(system), " ".join((system["id"], system["version"])).strip()
    if source is None or source.origin == "none":
        reason = source.reason if source else "it is not known where it gets Prometheus from"
        return Problem("monitoring_no_packages", words or name, {"reason": reason})
    if source.origin == "declared" and not wanted.repository:
        return Problem("monitoring_no_repository", words)
    return source


def obstacle(name: str, variables: Mapping[str, Any], system: Mapping[str, str]) -> Problem | None:
    """Return the reason why a host that is to be monitored cannot be, as far as its system tells; for the plan, before it is touched."""
    if str(variables.get("monitoring_state") or "absent") != "present":
        return None
    source = source_for(name, request(variables), system)
    return source if isinstance(source, Problem) else None


def has_dcgm(variables: Mapping[str, Any], facts: Mapping[str, Any] | None = None) -> bool:
    """Return True if a node has GPUs, its user wants NVIDIA's exporter, and its plan has a repository with it."""
    told = facts if facts is not None else variables.get("ansible_facts") or {}
    stack = told.get("gpu_stack") or {}
    return bool(stack.get("gpus") and request(variables).dcgm) and no_dcgm(told) is None


def no_dcgm(facts: Mapping[str, Any]) -> str | None:
    """Return the reason why a node cannot have NVIDIA's exporter; None where it can."""
    stack, system = facts.get("gpu_stack") or {}, system_of(facts)
    if not stack.get("repository"):
        return "its plan has no NVIDIA repository"
    if not has_dcgm_packages(system):
        return f"NVIDIA's repository has none for {system['id']} {system['version']}"
    planned = planned_dcgm(facts)
    if planned and planned.startswith("3."):
        return f"its package needs the library of DCGM 4, but the plan has DCGM {planned}"
    return None


def refused(host: Host, groups: Groups) -> list[Problem]:
    """Return the problems that prevent any change: values that are missing, addresses that are not known, services of another owner."""
    found = list(lacking(host.wanted))
    if not list(groups.get(CONTROLLERS, ())):
        found.append(Problem("monitoring_no_controller", CONTROLLERS))
    asked = host.peers.unknown if "prometheus" in host.programs else [] if host.address else [host.name]
    found += [Problem("monitoring_no_address", one) for one in asked]
    if host.wanted.grafana and "prometheus" in host.programs and not is_installed(host.facts):
        found.append(Problem("monitoring_no_grafana", host.name))
    # The default asks for it where it can be had; who sets the variable means it.
    reason = no_dcgm(host.facts) if (host.facts.get("gpu_stack") or {}).get("gpus") else None
    if "node" in host.programs and host.dcgm_declared and host.wanted.dcgm and reason:
        found.append(Problem("monitoring_no_dcgm", host.name, {"reason": reason}))
    state = host.facts.get("gpu_node_state") or {}
    if "monitoring" not in (state.get("records") or ()):
        services = state.get("services") or {}
        running = [one.service for one in host.programs.values() if (services.get(one.service) or {}).get("active")]
        found += [Problem("monitoring_foreign", one, {"host": host.name}) for one in running]
    return found
