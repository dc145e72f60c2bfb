# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets of ports as sorted ranges that do not touch."""

from __future__ import annotations

import re
from collections.abc import Iterable

Range = tuple[int, int]
Ranges = tuple[Range, ...]

UNPRIVILEGED: Ranges = ((1024, 65535),)
_RANGE = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")


def parse_range(value: object) -> Range | None:
    """Return a port or a range such as 50000-50999; None for what is neither."""
    match = _RANGE.fullmatch(str(value).strip())
    if not match:
        return None
    first, last = int(match[1]), int(match[2] or match[1])
    return (first, last) if 1 <= first <= last <= 65535 else None


def union(ranges: Iterable[Range]) -> Ranges:
    """Return the same ports in as few ranges as there can be."""
    found: list[Range] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)


def without(ranges: Iterable[Range], taken: Iterable[Range]) -> Ranges:
    """Return the ports of the one that are not among the other."""
    left = list(union(ranges))
    for low, high in union(taken):
        pieces = [((first, min(last, low - 1)), (max(first, high + 1), last)) for first, last in left]
        left = [piece for both in pieces for piece in both if piece[0] <= piece[1]]
    return union(left)


def within(ranges: Iterable[Range], limits: Iterable[Range]) -> Ranges:
    """Return the ports that are in both."""
    return without(ranges, without([(1, 65535)], limits))


def words(ranges: Iterable[Range], dash: str = "-") -> list[str]:
    """Return each range as text."""
    return [str(first) if first == last else f"{first}{dash}{last}" for first, last in ranges]
