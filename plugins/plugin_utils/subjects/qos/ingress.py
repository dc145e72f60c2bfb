# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters of tc that choose the class of arriving packets: rules of nftables come after the ifb device.

u32 matches words of a packet under a mask, so a range of ports is several matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ....module_utils.host.tc import MAJOR
from ...cluster.networks import of_version
from .request import Request

# They are tried one after another, for every packet.
MOST_FILTERS = 256
FAMILIES = {4: ("ip", "ip", "dsfield"), 6: ("ipv6", "ip6", "priority")}
PROTOCOLS = (6, 17)  # TCP and UDP
_PRIVILEGED = ((0, 0xFC00),)


def filters(wanted: Request) -> list[str]:
    """Return words for ``tc filter add dev X parent Y``; the first match decides."""
    return [words for version in FAMILIES for words in _of_version(wanted, version)]


def masks(first: int, last: int) -> list[tuple[int, int]]:
    """Return (value, mask) of the 16-bit numbers from first to last, as few as there can be."""
    found = []
    while first <= last:
        size = first & -first or 0x10000
        while first + size - 1 > last:
            size //= 2
        found.append((first, 0xFFFF & ~(size - 1)))
        first += size
    return found


def _of_version(wanted: Request, version: int) -> Iterator[str]:
    """Yield those of one IP version. A priority of tc's filters has one protocol."""
    protocol, family, field = FAMILIES[version]
    peers = of_version(wanted.peers, version)
    start = f"protocol {protocol} prio {version}"
    training, rest = f"flowid {MAJOR}10", f"flowid {MAJOR}20"
    for peer in peers:
        source = f"u32 match {family} src {peer}"
        if wanted.dscp:
            for one in wanted.dscp:
                yield f"{start} {source} match {family} {field} {one << 2} 0xfc {training}"
        if wanted.ports:
            ports = [pair for first, last in wanted.ports for pair in masks(first, last)]
            for match in _ports(family, ports):
                yield f"{start} {source} {match} {training}"
        if not wanted.dscp and not wanted.ports:
            for match in _ports(family, _PRIVILEGED):
                yield f"{start} {source} {match} {rest}"
            for one in PROTOCOLS:
                yield f"{start} {source} match {family} protocol {one} 0xff {training}"


def _ports(family: str, ports: Iterable[tuple[int, int]]) -> Iterator[str]:
    """Yield matches of either port, source or destination, for each protocol that has them."""
    for protocol in PROTOCOLS:
        for side in ("sport", "dport"):
            for value, mask in ports:
                yield f"match {family} protocol {protocol} 0xff match {family} {side} {value} {mask:#06x}"
