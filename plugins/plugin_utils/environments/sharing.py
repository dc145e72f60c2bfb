# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes whose directory of environments is one and the same: one of them makes an environment, the others verify it. Pure.

No node decides for another: a mark counts as its node's only if its name says so, and two nodes that made one each share a directory only
if each sees the other's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath
from typing import Any

__all__ = ["leaders", "marks", "share"]


def marks(paths: Mapping[str, str]) -> dict[str, str]:
    """Return {host: name of its mark} of the names in the form of a mark of that host. paths: as the hosts say, in the play's order."""
    names = {host: PurePosixPath(path).name for host, path in paths.items()}
    return {
        host: name for host, name in names.items() if re.fullmatch(rf"\.shared-[a-z0-9_]+\.{re.escape(host)}", name)
    }


def leaders(markers: Mapping[str, str], seen: Mapping[str, Collection[str]]) -> dict[str, str]:
    """Map each host to the first one with the same directory: itself, where it shares that with none before it.

    markers: host -> name of the file that it made there, in the play's order; seen: host -> names that are there for it. A host without
    a file of its own, which can only read there, is believed of itself.
    """

    def is_one(host: str, other: str) -> bool:
        return markers[other] in seen[host] and (host not in markers or markers[host] in seen.get(other, ()))

    return {host: next((other for other in markers if is_one(host, other)), host) for host in seen}


def share(
    places: Mapping[str, Mapping[str, Mapping[str, Any]]], leader_of: Mapping[str, str], marked: Collection[str]
) -> dict[str, dict[str, Any]]:
    """Return for each host {leader, shared, places, others, unsupported}: its places, without what its leader does.

    shared: whether another host has the same directory; others: environments that would be others than the leader's, though their
    names are the same; unsupported: those that only separate directories can have, as conda or role horovod works in them, too

    places: see places.describe_places; marked: the hosts that made a file there. What no leader saw of another stops only that other.
    """
    followers = {
        leader: [host for host, other in leader_of.items() if other == leader and host != leader]
        for leader in leader_of.values()
    }
    found = {}
    for host, leader in leader_of.items():
        one = _shared(host, leader, bool(followers[leader]), places[host], places[leader])
        if host == leader and not any(other in marked for other in followers[leader]):
            one["unsupported"] = []
        found[host] = one
    return found


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
