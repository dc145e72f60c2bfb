# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The schedule of pairs of nodes: rounds of a tournament in which every node meets every other once.

The circle method (Kirkman, 1847; J. H. Dinitz, "Tournament scheduling" in the Handbook of Combinatorial Designs): all players but
the last stand in a circle; in round r those whose places add up to r meet, and who would meet itself meets the last. With an odd
number of nodes, the node that meets the empty place rests.
"""

from __future__ import annotations

from collections.abc import Iterable

Pair = tuple[str, str]


def full_rounds(count: int) -> int:
    """Return the number of rounds in which each of COUNT nodes meets every other: count - 1, or count where it is odd."""
    return max(count + count % 2 - 1, 0) if count > 1 else 0


def chosen_rounds(count: int, most: int) -> list[int]:
    """Return at most the given number of rounds, spread evenly over all of them; in each, a node meets another one."""
    full = full_rounds(count)
    if most >= full:
        return list(range(full))
    return [number * full // most for number in range(most)]


def partner(place: int, number: int, count: int) -> int | None:
    """Return whom the node at PLACE of COUNT meets in round NUMBER; None where it rests."""
    circle = full_rounds(count)
    last = circle  # the player that does not stand in the circle; with an odd count, the empty place
    if place == last:
        found = number * ((circle + 1) // 2) % circle
    else:
        found = (number - place) % circle
        found = last if found == place else found
    return found if found < count else None


def rounds(nodes: Iterable[str], most: int) -> list[list[Pair]]:
    """Return the pairs of each round, at most MOST of them, whatever the order of the nodes."""
    ordered = sorted(nodes)
    found = []
    for number in chosen_rounds(len(ordered), most):
        met = ((place, partner(place, number, len(ordered))) for place in range(len(ordered)))
        found.append([(ordered[place], ordered[other]) for place, other in met if other is not None and place < other])
    return found


def partners(node: str, nodes: Iterable[str], most: int) -> list[str]:
    """Return the nodes that a node meets in the same rounds; none where it is not among the nodes."""
    ordered = sorted(nodes)
    if node not in ordered:
        return []
    place = ordered.index(node)
    met = (partner(place, number, len(ordered)) for number in chosen_rounds(len(ordered), most))
    return [ordered[other] for other in met if other is not None]


def servers_by_client(nodes: Iterable[str], most: int) -> list[dict[str, str]]:
    """Return the rounds as {client: server}."""
    return [dict(one) for one in rounds(nodes, most)]
