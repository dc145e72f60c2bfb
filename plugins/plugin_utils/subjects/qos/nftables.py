# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of nftables that gives training its class. HTB takes a packet's priority for a class as it is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from ....module_utils.host.tc import MAJOR
from ....module_utils.settings.qos_facts import COMMENT, FAMILY, TABLE
from ...cluster.networks import nft_names, nft_sets
from ..firewall.ports import words
from .decide import TRAINING
from .request import Request

HEADER = "# Written by role allreduce.gpu.qos; changes made here are lost.\n"
# With the rules of others that change packets (mangle).
PRIORITY = -150
UNPRIVILEGED = "th sport 1024-65535 th dport 1024-65535"
FAMILIES = ((4, "ip"), (6, "ip6"))


def table(wanted: Request, interfaces: Sequence[str]) -> tuple[str, str]:
    """Return (text that nft loads in one step, its digest). The number of rules does not depend on that of peers."""
    body = "\n".join(_table(wanted, interfaces, "{digest}"))
    digest = hashlib.sha256(body.encode()).hexdigest()[:16]
    return HEADER + body.replace("{digest}", digest) + "\n", digest


def _table(wanted: Request, interfaces: Sequence[str], digest: str) -> Iterator[str]:
    name = f"{FAMILY} {TABLE}"
    yield f"add table {name}"
    yield f"delete table {name}"
    yield f"table {name} {{"
    yield from nft_sets("peers", wanted.peers)
    others = f"\t\toifname != {{ {nft_names(interfaces)} }} return"
    # Also what containers send: it is forwarded.
    yield from _chain("postrouting", f'{others} comment "{COMMENT} {digest}"', _packets(wanted))
    if wanted.cgroups:
        # Only here do packets know their socket's group.
        yield from _chain("output", others, _groups(wanted))
    yield "}"


def _chain(hook: str, others: str, rules: Iterable[str]) -> Iterator[str]:
    yield f"\tchain {hook} {{"
    yield f"\t\ttype filter hook {hook} priority {PRIORITY}; policy accept;"
    yield others
    yield from (f"\t\t{rule} meta priority set {MAJOR}{TRAINING}" for rule in rules)
    yield "\t}"


def _packets(wanted: Request) -> Iterator[str]:
    """Yield the matches that recognize training by the packets themselves."""
    protocols = "meta l4proto { tcp, udp }"
    ports = ", ".join(words(wanted.ports))
    for version, family in FAMILIES:
        peers = f"{family} daddr @peers{version}"
        if ports:
            yield f"{peers} {protocols} th dport {{ {ports} }}"
            yield f"{peers} {protocols} th sport {{ {ports} }}"
        if wanted.dscp:
            yield f"{peers} {family} dscp {{ {', '.join(map(str, wanted.dscp))} }}"
        if not (ports or wanted.dscp or wanted.cgroups):
            yield f"{peers} {protocols} {UNPRIVILEGED}"


def _groups(wanted: Request) -> Iterator[str]:
    for version, family in FAMILIES:
        for path in wanted.cgroups:
            yield f'{family} daddr @peers{version} socket cgroupv2 level {path.count("/") + 1} "{path}"'
