# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses and networks of both IP versions as sets."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

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
    """Return whether a value that a user declares is an address or a network, and not all addresses."""
    try:
        values.network(value)
    except Unfit:
        return False
    return True


def of_version(addresses: Iterable[str], version: int) -> list[str]:
    """Return those of IP version 4 or 6."""
    return [one for one in addresses if (":" in one) == (version == 6)]


def _place(network: Network) -> tuple[int, int, int]:
    return network.version, int(network.network_address), network.prefixlen
