# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes whose directory of environments is one and the same: one of them makes an environment, the others verify it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

__all__ = ["leaders", "share"]


def leaders(markers: Mapping[str, str], seen: Mapping[str, Collection[str]]) -> dict[str, str]:
    """Map each host to the first one whose marker it sees in its own directory: itself, where it shares that with none before it.

    markers: host -> name of the file that it made there, in the play's order; seen: host -> names that are there for it
    """
    return {
        host: next((other for other, marker in markers.items() if marker in there), host)
        for host, there in seen.items()
    }


def share(
    places: Mapping[str, Mapping[str, Mapping[str, Any]]], leader_of: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """Return for each host {leader, shared, places, others, unsupported}: its places, without what its leader does.

    shared: whether another host has the same directory; others: environments that would be others than the leader's, though their
    names are the same; unsupported: those that only separate directories can have, as conda or role horovod works in them, too

    places: see places.describe_places
    """
    counts = {leader: sum(other == leader for other in leader_of.values()) for leader in leader_of.values()}
    return {
        host: _shared(host, leader, counts[leader] > 1, places[host], places[leader])
        for host, leader in leader_of.items()
    }


def _shared(
    host: str, leader: str, shared: bool, own: Mapping[str, Mapping[str, Any]], made: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    work = {name: place for name, place in own.items() if shared and place["switch"]}
    others = [name for name, place in work.items() if name in made and made[name]["directory"] != place["directory"]]
    follows = [name for name in work if host != leader and name in made and name not in others]
    waiting = {name: {**own[name], "installed": True, "create": False, "seed": "", "waits": True} for name in follows}
    return {
        "leader": leader,
        "shared": shared,
        "places": {**own, **waiting},
        "others": others,
        "unsupported": [name for name, place in work.items() if place["late"] or place["conda_lock"]],
    }
