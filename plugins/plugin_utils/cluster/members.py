# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The members of a cluster whose nodes reach each other by SSH, and what of them goes into the files of all. Pure.

A node that does not fit is left out of the files of the others, with a sentence; nothing else about them depends on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ..documents.door import told
from ..problems.problem import Problem, refuse
from . import address as addresses
from . import names as host_names
from .host_keys import changed_keys, pinned_keys
from .records import Record, read_record, recorded_nodes
from .rotation import rotation_problems
from .ssh import HOST_KEY_FACTS, describe_cluster, describe_node, host_keys, key_kind, node_problems

KEYS = "__cluster_ssh_keys"
FIPS = "ansible_facts.gpu_node_state.fips"
READS = (
    *addresses.READS,
    *host_names.READS,
    *HOST_KEY_FACTS,
    FIPS,
    "cluster_ssh_extra_addresses",
    *(f"{KEYS}.{name}" for name in ("public_key", "next_public_key", "record.text", "record.time", "rotated")),
)
Variables = Mapping[str, Mapping[str, Any]]


class _Members:
    """The nodes that take part, fewer with each problem that is found."""

    def __init__(self, known: Variables, names: Iterable[str]) -> None:
        self.known, self.names = known, list(names)
        self.problems: list[Problem] = []
        self.notes: list[Problem] = []

    def leave_out(self, problems: Iterable[Problem]) -> None:
        """Note problems whose subject, or whose nodes, are then out."""
        found = list(problems)
        self.problems += found
        gone = {node for one in found for node in nodes_of(one)}
        self.names = [name for name in self.names if name not in gone]

    def variables(self) -> dict[str, Mapping[str, Any]]:
        return {name: self.known[name] for name in self.names}

    def keys(self) -> dict[str, Mapping[str, Any]]:
        return {name: self.known[name].get(KEYS) or {} for name in self.names}


def nodes_of(problem: Problem) -> Collection[str]:
    """Return the nodes that a problem is of."""
    nodes: Collection[str] = problem.detail.get("nodes") or (problem.subject,)
    return nodes


def collect(
    names: Iterable[str],
    hostvars: Variables,
    present: Iterable[str],
    extra: Iterable[str] = (),
    accepted: Mapping[str, str] | None = None,
    rotation: str = "",
) -> dict[str, Any]:
    """Return the result of describe_cluster, {left_out: problems, notes: problems, rotating}; raise ProblemError for what users ask.

    names: all nodes; present: those that take part in this run; accepted: fingerprints of host keys that replace others
    """
    names, taking_part = list(names), set(present)
    said = told(hostvars, [name for name in names if name in hostvars], READS)
    kind = key_kind(said.values.values())
    members = _Members(said.values, [name for name in names if name in taking_part and name in said.values])
    members.problems += [one for one in said.problems if one.subject in taking_part]
    everybody = {**dict.fromkeys(hostvars, {}), **said.values}
    members.leave_out(_misnamed(members.variables(), host_names.Names.of(everybody)))
    members.leave_out(one for one in addresses.taken_addresses(said.values) if one.subject in members.names)
    members.leave_out(
        addresses.address_problems({node: addresses.cluster_address(one) for node, one in members.variables().items()})
    )
    members.leave_out(
        one for node, keys in members.keys().items() for one in node_problems(node, said.values[node], keys, kind)
    )
    records = _records(members)
    absent = [name for name in names if name not in taking_part]
    if rotation:
        refuse(rotation_problems(rotation, absent, members.keys()))
    pins = pinned_keys(members.names, records)
    members.leave_out(changed_keys(_host_keys(members, kind), pins, accepted or {}))
    nodes = {
        name: describe_node(
            name, said.values[name], one.get("public_key"), kind, one.get("next_public_key"), pins.get(name)
        )
        for name, one in members.keys().items()
    }
    kept = _recorded(recorded_nodes(absent, records), nodes, everybody)
    found = describe_cluster([name for name in names if name in nodes or name in absent], nodes, kept, extra)
    rotating = bool(rotation) and any(not one.get("rotated", True) for one in members.keys().values())
    return {**found, "rotating": rotating, "left_out": members.problems, "notes": members.notes}


def _misnamed(known: Variables, names: host_names.Names) -> Iterator[Problem]:
    for node, variables in known.items():
        if problem := names.problem(node, variables):
            yield problem


def _records(members: _Members) -> list[Record]:
    found = []
    for name, keys in members.keys().items():
        if keys.get("record"):
            record, problems = read_record(name, keys["record"])
            if record is None:
                members.leave_out(problems)
            else:
                found.append(record)
                members.notes += problems
    return found


def _host_keys(members: _Members, kind: str) -> dict[str, dict[str, list[str]]]:
    return {
        name: {"all": host_keys(variables), "usable": host_keys(variables, kind)}
        for name, variables in members.variables().items()
    }


def _recorded(
    found: Variables, present: Variables, known: Mapping[str, Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    """Return recorded entries as far as they fit the inventory: no other source decides where a node is and from where it may come.

    An entry with the address of another node is left out, and a name that the node may not have.
    """
    names = host_names.Names.of(known)
    taken = [node["address"] for node in present.values()]
    kept: dict[str, Mapping[str, Any]] = {}
    for name, entry in found.items():
        variables = known.get(name) or {}
        sources = [str(one) for one in variables.get("cluster_ssh_extra_addresses") or []]
        address = addresses.cluster_address({**variables, "ansible_facts": {}}) or entry["address"]
        claim = {**variables, "ansible_facts": {"nodename": entry["nodename"], "default_ipv4": {"address": address}}}
        nodename = None if names.problem(name, claim) else entry["nodename"]
        if addresses.is_address(address) and address not in taken:
            kept[name] = {**entry, "sources": sources, "address": address, "nodename": nodename}
            taken.append(address)
    return kept
