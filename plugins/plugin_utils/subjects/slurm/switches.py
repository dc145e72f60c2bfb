# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The switches that nodes are said to be at, as topology.conf of topology/tree (topology.conf(5)): jobs get nodes that are close.

A switch is written as the way to it from above, such as row1/leaf3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from ....module_utils.host import hostlist
from ....module_utils.settings.slurm import OURS
from ...problems.problem import Problem

_fold: Callable[[Iterable[str]], str] = hostlist.fold  # Python 3.6 on the nodes: it has no types of its own
FILE, PLUGIN = "topology.conf", "topology/tree"
# What joins the uppermost switches: without it, no job could have nodes of two.
ROOT = "root"
NAME = r"[A-Za-z][A-Za-z0-9_-]{0,39}"
FORM = rf"({NAME}(/{NAME}){{0,3}})?"


def content(places: Mapping[str, str]) -> str:
    """Return topology.conf. places: node -> its switch, none of them empty"""
    nodes: dict[str, list[str]] = {}
    for node, place in sorted(places.items()):
        nodes.setdefault(place, []).append(node)
    ways = sorted({place[: found.start()] for place in nodes for found in re.finditer(r"/|$", place)})
    below: dict[str, list[str]] = {}
    for way in ways:
        upper, _slash, _name = way.rpartition("/")
        below.setdefault(upper or ROOT, []).append(_name_of(way))
    if len(below[ROOT]) == 1:
        del below[ROOT]
    lines = [f"SwitchName={_name_of(way)} Nodes={_fold(nodes[way])}" for way in ways if way in nodes]
    upper_first = sorted((way for way in below if way != ROOT), key=lambda way: -way.count("/"))
    lines += [f"SwitchName={_name_of(way)} Switches={_fold(below[way])}" for way in upper_first]
    if ROOT in below:
        lines.append(f"SwitchName={ROOT} Switches={_fold(below[ROOT])}")
    return "\n".join([f"{OURS} from slurm_switch of the nodes.", *lines, ""])


def _name_of(way: str) -> str:
    """Return the name of a switch, which Slurm wants once: two rows may both have a leaf1, and no name has a dot."""
    return way.replace("/", ".")


def problems(places: Mapping[str, str]) -> list[Problem]:
    """Return the problems of the tree. places: host -> its switch, empty where none is said; no problem where none says any"""
    said = {place for place in places.values() if place}
    if not said:
        return []
    found = []
    left = sorted(host for host, place in places.items() if not place)
    if left:
        found.append(Problem("slurm_no_switch", ", ".join(left)))
    uppers = {place[: found_at.start()] for place in said for found_at in re.finditer("/", place)}
    found += [Problem("slurm_switch_above", place) for place in sorted(said & uppers)]
    found += [Problem("slurm_switch_root", place) for place in sorted(said) if place.partition("/")[0] == ROOT]
    return found
