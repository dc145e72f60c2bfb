# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse a user's request to role qos, and refuse invalid values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ...cluster.address import READS, cluster_address
from ...cluster.networks import is_network, outermost, text
from ...problems.problem import Problem
from ..firewall.ports import Ranges, parse_range
from ..options import as_list
from .rates import Share, parse_rate, parse_share, rate_text

# The defaults of the role's variables (a test compares).
DEFAULTS: dict[str, Any] = {
    "qos_state": "absent",
    "qos_interfaces": [],
    "qos_rate": "",
    "qos_guarantee": "80%",
    "qos_ceiling": "100%",
    "qos_default_ceiling": "100%",
    "qos_extra_peers": [],
    "qos_ports": [],
    "qos_dscp": [],
    "qos_cgroups": [],
    "qos_ingress": False,
}
GROUP = "gpu_nodes"
# What is read of the other nodes.
READS_OF_OTHERS = READS
# All packets of an interface pass one lock of HTB; from here on that costs more than shares are worth.
FASTEST = 25 * 10**9
SHARES = ("qos_guarantee", "qos_ceiling", "qos_default_ceiling")
_CGROUP = re.compile(r"[A-Za-z0-9_.@:\\-]+(/[A-Za-z0-9_.@:\\-]+)*")


@dataclass(frozen=True)
class Request:
    """The variables of a node. rate: None for the link's own; peers: addresses of the other nodes and what else is training."""

    interfaces: tuple[str, ...] = ()
    address: str | None = None
    rate: int | None = None
    guarantee: Share = Share(part=0.8)
    ceiling: Share = Share(part=1.0)
    default_ceiling: Share = Share(part=1.0)
    peers: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()  # nodes without a known address
    ports: Ranges = ()
    dscp: tuple[int, ...] = ()
    cgroups: tuple[str, ...] = ()
    ingress: bool = False


def given(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of the role, those that are not set with its defaults."""
    found = {name: variables.get(name, default) for name, default in DEFAULTS.items()}
    lists = [name for name, default in DEFAULTS.items() if isinstance(default, list)]
    return {**found, **{name: as_list(found[name]) for name in lists}}


def request(name: str, known: Mapping[str, Mapping[str, Any]], nodes: Iterable[str]) -> Request:
    """Return the request for node NAME. For variables without problems.

    known: the variables of the nodes, without those that are left out; nodes: the group of all
    """
    mine = given(known[name])
    addresses = {node: cluster_address(known[node]) for node in nodes if node != name and node in known}
    shares = {share: parse_share(mine[share]) or Share() for share in SHARES}
    return Request(
        interfaces=tuple(dict.fromkeys(map(str, mine["qos_interfaces"]))),
        address=cluster_address(known[name]),
        rate=parse_rate(mine["qos_rate"]),
        guarantee=shares["qos_guarantee"],
        ceiling=shares["qos_ceiling"],
        default_ceiling=shares["qos_default_ceiling"],
        peers=distinct([*filter(None, addresses.values()), *map(str, mine["qos_extra_peers"])]),
        unknown=tuple(node for node, found in addresses.items() if not found),
        ports=tuple(sorted({found for found in map(parse_range, mine["qos_ports"]) if found})),
        dscp=tuple(sorted({int(one) for one in mine["qos_dscp"]})),
        cgroups=tuple(dict.fromkeys(str(one).strip("/") for one in mine["qos_cgroups"])),
        ingress=boolean(mine["qos_ingress"], strict=False),
    )


def distinct(addresses: Iterable[str]) -> tuple[str, ...]:
    """Return addresses and networks in order, without those that another one contains."""
    return tuple(text(one) for one in outermost(addresses))


def problems(variables: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of the values of a node's variables; no fact of the node is needed for it."""
    mine = given(variables)
    rate = str(mine["qos_rate"])
    if rate and not parse_rate(rate):
        yield Problem("qos_no_rate", "qos_rate", {"value": rate})
    elif rate:
        yield from too_fast("qos_rate", parse_rate(rate))
    for name in SHARES:
        if parse_share(mine[name]) is None:
            yield Problem("qos_no_share", name, {"value": str(mine[name])})
    for name, (code, is_right) in ELEMENTS.items():
        yield from (Problem(code, str(one)) for one in mine[name] if not is_right(str(one)))


def too_fast(subject: str, rate: int | None) -> Iterator[Problem]:
    """Yield the problem that a link is too fast to be shaped by HTB."""
    if rate and rate > FASTEST:
        yield Problem("qos_too_fast", subject, {"rate": rate_text(rate), "most": rate_text(FASTEST)})


def link_problems(node: str, variables: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield interfaces that a node lacks, or that are too fast, as far as facts that Ansible has gathered tell.

    Ansible's facts write "_" for what is not a letter or digit of a name.
    """
    mine, facts = given(variables), variables.get("ansible_facts") or {}
    held = facts.get("interfaces") or []
    default = (facts.get("default_ipv4") or {}).get("interface")
    for one in map(str, mine["qos_interfaces"] or [default] * bool(default)):
        name = re.sub(r"\W", "_", one)
        if held and not {one, name} & set(held):
            yield Problem("qos_lacks_interface", one, {"nodes": [node], "interfaces": sorted(held)})
        speed = (facts.get(name) or {}).get("speed")
        if isinstance(speed, int) and not mine["qos_rate"]:
            yield from too_fast(f"{one} of {node}", speed * 10**6)


def share_problems(wanted: Request, link: int) -> Iterator[Problem]:
    """Yield shares that do not fit into each other on a link of a given rate in bit/s."""
    guarantee, ceiling = wanted.guarantee.of(link), wanted.ceiling.of(link)
    if not guarantee <= ceiling <= link:
        detail = {"ceiling": rate_text(ceiling), "link": rate_text(link)}
        yield Problem("qos_share_too_large", rate_text(guarantee), detail)
    elif guarantee > link * 0.99:
        yield Problem("qos_nothing_left", rate_text(guarantee), {"link": rate_text(link)})
    elif not link - guarantee <= wanted.default_ceiling.of(link) <= link:
        detail = {"rest": rate_text(link - guarantee), "link": rate_text(link)}
        yield Problem("qos_default_ceiling", rate_text(wanted.default_ceiling.of(link)), detail)


def _is_dscp(text: str) -> bool:
    return bool(re.fullmatch(r"\d{1,2}", text)) and int(text) <= 63


def _is_cgroup(path: str) -> bool:
    return bool(_CGROUP.fullmatch(path.strip("/"))) and ".." not in path.split("/")


def _is_interface(name: str) -> bool:
    """Return whether the kernel takes the name; white space and quotes would end a word of tc or nft."""
    return 0 < len(name) < 16 and name not in (".", "..") and not set(name) & set("/:\"'\\ \t\n*#")


# The problem of an invalid element of a list, and the function that tells whether it is valid.
ELEMENTS: dict[str, tuple[str, Callable[[str], bool]]] = {
    "qos_ports": ("qos_no_port", lambda text: parse_range(text) is not None),
    "qos_dscp": ("qos_no_dscp", _is_dscp),
    "qos_extra_peers": ("qos_no_address", is_network),
    "qos_cgroups": ("qos_no_cgroup_name", _is_cgroup),
    "qos_interfaces": ("qos_no_interface_name", _is_interface),
}
