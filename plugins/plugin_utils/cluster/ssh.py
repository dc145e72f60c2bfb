# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Derive who may reach whom by SSH in a cluster: facts of all nodes in, the same three texts for every node out. Pure."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..documents import values
from ..documents.values import Unfit
from ..problems.problem import Problem
from .address import cluster_address
from .names import is_own_name, node_name

__all__ = [
    "authorized_keys",
    "describe_cluster",
    "describe_node",
    "host_keys",
    "hosts_lines",
    "key_kind",
    "known_hosts",
    "node_problems",
]

# The first that a node has is enough: ssh asks a host for the kind of key it knows.
_KEY_KINDS = ("ed25519", "ecdsa", "rsa")
# FIPS 140-2 and the policies that follow it do not know Ed25519: such a node neither takes nor checks a key of that kind.
_FIPS_KEY_KINDS = ("ecdsa", "rsa")
# The facts that tell a node's host keys.
HOST_KEY_FACTS = tuple(
    f"ansible_facts.ssh_host_key_{kind}_public{what}" for kind in _KEY_KINDS for what in ("", "_keytype")
)


def key_kind(hosts: Iterable[Mapping[str, Any]]) -> str:
    """Return the kind of the users' keys that every node takes. hosts: the nodes' variables with their facts."""
    return _kinds(any(_is_fips(variables) for variables in hosts))[0]


def _is_fips(variables: Mapping[str, Any]) -> bool:
    return bool(((variables.get("ansible_facts") or {}).get("gpu_node_state") or {}).get("fips"))


def _kinds(fips: bool) -> tuple[str, ...]:
    return _FIPS_KEY_KINDS if fips else _KEY_KINDS


def host_keys(variables: Mapping[str, Any], kind: str | None = None) -> list[str]:
    """Return the host keys of a node, the one to be known by first; invalid ones are left out.

    kind: of the keys that every node takes; None: all
    """
    keys = []
    for _kind, key in _told_keys(variables, _kinds(kind not in (None, _KEY_KINDS[0]))):
        with contextlib.suppress(Unfit):
            keys.append(values.public_key(key))
    return keys


def _told_keys(variables: Mapping[str, Any], kinds: Iterable[str]) -> Iterator[tuple[str, str]]:
    facts = variables.get("ansible_facts") or {}
    for one in kinds:
        if key := facts.get(f"ssh_host_key_{one}_public"):
            yield one, f"{facts.get(f'ssh_host_key_{one}_public_keytype', 'ssh-' + one)} {key}"


def node_problems(
    name: str, variables: Mapping[str, Any], keys: Mapping[str, Any], kind: str = _KEY_KINDS[0]
) -> list[Problem]:
    """Return the problems of a node's keys: those that are not a form that OpenSSH writes.

    keys: what module ssh_keys returned. The files are the user's, who could have put anything there, so nothing of them is shown.
    """
    problems = []
    for key in (keys.get("public_key"), keys.get("next_public_key")):
        if key is not None and not _is_key(key):
            problems.append(Problem("invalid_public_key", name, {"kind": kind}))
    told = dict(_told_keys(variables, _KEY_KINDS))
    problems += [Problem("invalid_host_key", name, {"kind": one}) for one, key in told.items() if not _is_key(key)]
    return list({(one.code, one.detail["kind"]): one for one in problems}.values())


def _is_key(text: object) -> bool:
    try:
        values.public_key(text)
    except Unfit:
        return False
    return True


def describe_node(
    name: str,
    variables: Mapping[str, Any],
    public_key: str | None,
    kind: str = _KEY_KINDS[0],
    next_key: str | None = None,
    pinned: str | None = None,
) -> dict[str, Any]:
    """Return the description of one node for the others: its names, its addresses, its host key and its user's public key.

    kind: of the keys that every node takes, see key_kind; next_key: the public key that takes the place of the other in a
    rotation; pinned: the host key that the node is known by. For a node without problems.
    """
    keys = host_keys(variables, kind)
    return {
        "name": name,
        "address": cluster_address(variables),
        "nodename": node_name(variables),
        "sources": [str(source) for source in variables.get("cluster_ssh_extra_addresses") or []],
        "host_key": pinned if pinned in keys else next(iter(keys), None),
        "public_key": values.public_key(public_key) if public_key else None,
        **({"next_key": values.public_key(next_key)} if next_key else {}),
    }


def _names(nodes: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the names that each node is known by, without addresses and without those that several nodes claim."""
    claims = {node["name"]: list(dict.fromkeys(filter(None, (node["name"], node["nodename"])))) for node in nodes}
    counts = Counter(name for names in claims.values() for name in names)
    return {
        node: [name for name in names if (name == node or counts[name] == 1) and _is_name(name)]
        for node, names in claims.items()
    }


def _is_name(text: str) -> bool:
    return is_own_name(text) and not values.is_ip(text)


def authorized_keys(nodes: Iterable[Mapping[str, Any]], extra: Iterable[str] = ()) -> str:
    """Return the text of authorized_keys: each node's keys from that node's addresses only, then the site's own lines.

    restrict switches off forwarding of every kind; a terminal gives no one more than the commands they may run anyway.
    """
    lines = ["# Kept by role allreduce.gpu.cluster_ssh; keys of your own go into cluster_ssh_authorized_keys."]
    for node in nodes:
        sources = ",".join([node["address"], *node["sources"]])
        keys = filter(None, (node["public_key"], node.get("next_key")))
        lines += [f'restrict,pty,from="{sources}" {key} {node["name"]}' for key in keys]
    return "\n".join([*lines, *extra]) + "\n"


def known_hosts(nodes: Iterable[Mapping[str, Any]]) -> str:
    """Return the lines for known_hosts: each node's host key by its names and its address."""
    nodes = list(nodes)
    names = _names(nodes)
    return "\n".join(
        f"{','.join([*names[node['name']], node['address']])} {node['host_key']}" for node in nodes if node["host_key"]
    )


def hosts_lines(nodes: Iterable[Mapping[str, Any]]) -> str:
    """Return the lines for /etc/hosts: each node's address and names."""
    nodes = list(nodes)
    names = _names(nodes)
    return "\n".join(" ".join([node["address"], *names[node["name"]]]) for node in nodes if names[node["name"]])


def describe_cluster(
    names: Iterable[str],
    present: Mapping[str, Mapping[str, Any]],
    kept: Mapping[str, Mapping[str, Any]] | None = None,
    extra: Iterable[str] = (),
) -> dict[str, Any]:
    """Return the texts for every node, and the names of nodes about which nothing is known.

    names: all nodes of the cluster; present: descriptions of those that take part in this run; kept: what former runs recorded of the
    others: a run on a part of the nodes cuts no node off; extra: lines for authorized_keys
    """
    known = {name: present.get(name) or (kept or {}).get(name) for name in names}
    nodes = [node for _name, node in sorted(known.items()) if node]
    return {
        "nodes": nodes,
        "unknown": sorted(name for name in known if not known[name]),
        "authorized_keys": authorized_keys(nodes, extra),
        "known_hosts": known_hosts(nodes),
        "hosts": hosts_lines(nodes),
    }
