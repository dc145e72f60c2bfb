# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses and networks of both IP versions as sets, also as those of nftables."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator

from ..documents import values
from ..documents.values import Unfit

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def outermost(addresses: Iterable[str]) -> list[Network]:
    """Return addresses and networks without those that another one contains, by version and address."""
    kept: list[Network] = []
    for one in sorted({ipaddress.ip_network(one, strict=False) for one in addresses}, key=_place):
        # What contains a network begins at or before its first address, so it is the last one that was kept.
        if not kept or kept[-1].version != one.version or not one.subnet_of(kept[-1]):  # type: ignore[arg-type]
            kept.append(one)
    return kept


def text(network: Network) -> str:
    """Return a network as the kernel writes it: an address alone without its length."""
    return str(network.network_address) if network.prefixlen == network.max_prefixlen else str(network)


def is_network(value: object) -> bool:
    """Return True if a value that a user declares is an address or a network, and not all addresses."""
    try:
        values.network(value)
    except Unfit:
        return False
    return True


def of_version(addresses: Iterable[str], version: int) -> list[str]:
    """Return those of IP version 4 or 6."""
    return [one for one in addresses if (":" in one) == (version == 6)]


def nft_sets(name: str, addresses: Iterable[str]) -> Iterator[str]:
    """Yield the lines of the sets NAME4 and NAME6 of a table of nftables."""
    for version, kind in ((4, "ipv4_addr"), (6, "ipv6_addr")):
        elements = of_version(addresses, version)
        yield f"\tset {name}{version} {{"
        yield f"\t\ttype {kind}"
        if any("/" in one for one in elements):
            yield "\t\tflags interval"
        if elements:
            yield f"\t\telements = {{ {', '.join(elements)} }}"
        yield "\t}"


def nft_names(names: Iterable[str]) -> str:
    """Return names of interfaces as the elements of a set that has no name."""
    return ", ".join(f'"{name}"' for name in names)


def _place(network: Network) -> tuple[int, int, int]:
    return network.version, int(network.network_address), network.prefixlen
