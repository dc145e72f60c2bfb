# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Derive who may reach whom by SSH in a cluster: facts of all nodes in, the same three texts for every node out. Pure."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ..problems.problem import Problem, refuse
from .address import address_problems, cluster_address
from .hosts import is_own_name

__all__ = [
    "authorized_keys",
    "describe_cluster",
    "describe_node",
    "host_keys",
    "hosts_lines",
    "key_kind",
    "known_hosts",
]

# The first that a node has is enough: ssh asks a host for the kind of key it knows.
_KEY_KINDS = ("ed25519", "ecdsa", "rsa")
# FIPS 140-2 and the policies that follow it do not know Ed25519: such a node neither takes nor checks a key of that kind.
_FIPS_KEY_KINDS = ("ecdsa", "rsa")
# What ssh-keygen writes for these kinds.
_PUBLIC_KEY_KINDS = ("ssh-ed25519", "ecdsa-sha2-", "ssh-rsa")


def key_kind(hosts: Iterable[Mapping[str, Any]]) -> str:
    """Return the kind of the users' keys that every node takes. hosts: the nodes' variables with their facts."""
    return _kinds(any(_is_fips(variables) for variables in hosts))[0]


def _is_fips(variables: Mapping[str, Any]) -> bool:
    return bool(((variables.get("ansible_facts") or {}).get("gpu_node_state") or {}).get("fips"))


def _kinds(fips: bool) -> tuple[str, ...]:
    return _FIPS_KEY_KINDS if fips else _KEY_KINDS


def host_keys(variables: Mapping[str, Any], kind: str | None = None) -> list[str]:
    """Return the host keys of a node, the one to be known by first. kind: of the keys that every node takes; None: all."""
    facts = variables.get("ansible_facts") or {}
    found = {one: facts.get(f"ssh_host_key_{one}_public") for one in _kinds(kind not in (None, _KEY_KINDS[0]))}
    return [
        f"{facts.get(f'ssh_host_key_{one}_public_keytype', 'ssh-' + one)} {key}" for one, key in found.items() if key
    ]


def describe_node(
    name: str,
    variables: Mapping[str, Any],
    public_key: str | None,
    kind: str = _KEY_KINDS[0],
    next_key: str | None = None,
    pinned: str | None = None,
) -> dict[str, Any]:
    """Return what the others must know of one node: its names, its addresses, its host key and its user's public key.

    kind: of the keys that every node takes, see key_kind; next_key: the public key that takes the place of the other in a
    rotation; pinned: the host key that the node is known by. ProblemError where a public key is the text of anything
    else: the file is the user's, who could have put anything there, and what is returned is shown.
    """
    if not all(key is None or _is_public_key(key) for key in (public_key, next_key)):
        refuse([Problem("invalid_public_key", name, {"kind": kind})])
    facts = variables.get("ansible_facts") or {}
    keys = host_keys(variables, kind)
    return {
        "name": name,
        "address": cluster_address(variables),
        "nodename": facts.get("nodename") or facts.get("hostname"),
        "sources": [str(source) for source in variables.get("cluster_ssh_extra_addresses") or []],
        "host_key": pinned if pinned in keys else next(iter(keys), None),
        "public_key": " ".join(public_key.split()[:2]) if public_key else None,
        **({"next_key": " ".join(next_key.split()[:2])} if next_key else {}),
    }


def _is_public_key(text: str) -> bool:
    """Return whether these are a kind of key and a blob that begins with the same kind, as RFC 4253, section 6.6, lays it out."""
    kind, blob = [*text.split(), "", ""][:2]
    try:
        content = base64.b64decode(blob, validate=True)
    except (binascii.Error, ValueError):
        return False
    return kind.startswith(_PUBLIC_KEY_KINDS) and content.startswith(len(kind).to_bytes(4, "big") + kind.encode())


def _names(nodes: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the names that each node is known by, without addresses and without those that several nodes claim."""
    claims = {node["name"]: list(dict.fromkeys(filter(None, (node["name"], node["nodename"])))) for node in nodes}
    counts = Counter(name for names in claims.values() for name in names)
    return {
        node: [name for name in names if (name == node or counts[name] == 1) and _is_name(name)]
        for node, names in claims.items()
    }


def _is_name(text: str) -> bool:
    if not is_own_name(text):
        return False
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return True
    return False


def authorized_keys(nodes: Iterable[Mapping[str, Any]], extra: Iterable[str] = ()) -> str:
    """Return the text of authorized_keys: each node's keys from that node's addresses only, then the site's own lines.

    restrict switches off forwarding of every kind; a terminal gives nobody more than the commands they may run anyway.
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
    names: Iterable[str], present: Mapping[str, Mapping[str, Any]], kept: Iterable[str] = (), extra: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the texts for every node, and the names of nodes about which nothing is known.

    names: all nodes of the cluster; present: descriptions of those that take part in this run; kept: JSON texts of
    former runs, the newest first, for the others: a run on a part of the nodes cuts nobody off; extra: lines for authorized_keys
    """
    former: dict[str, Mapping[str, Any]] = {}
    for text in kept:
        for node in json.loads(text):
            former.setdefault(node["name"], node)
    known = {name: present.get(name) or former.get(name) for name in names}
    nodes = [node for _name, node in sorted(known.items()) if node]
    refuse(address_problems({node["name"]: node["address"] for node in nodes}))
    return {
        "nodes": nodes,
        "unknown": sorted(name for name in known if not known[name]),
        "authorized_keys": authorized_keys(nodes, extra),
        "known_hosts": known_hosts(nodes),
        "hosts": hosts_lines(nodes),
    }
