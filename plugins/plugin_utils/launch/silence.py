# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ranks that hold up a run in which no rank has written anything for long: by their stacks, or else by when they wrote last. Pure.

A run that writes nothing may still compute; nothing here ends one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

SHOWN, FRAMES = 3, 8  # ranks that a line names, frames of a rank
APART = 30.0  # seconds between the last outputs of two ranks from which on they say something
# What is not the user's own code: the standard library and installed packages.
_LIBRARY = re.compile(r"/(lib|lib64)/python3[.\d]*/|/(site|dist)-packages/|^<frozen")


@dataclass(frozen=True)
class Rank:
    """A rank: when something of it was seen last, and the frames of its main thread, the innermost first."""

    rank: int
    node: str
    written: float
    stack: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Return the innermost frame of the user's own code, or of any."""
        own = next((frame for frame in self.stack if not _LIBRARY.search(frame)), "")
        return short(own or (self.stack[0] if self.stack else ""))


def behind(ranks: Sequence[Rank]) -> list[Rank]:
    """Return the ranks to look at: those elsewhere than most, or else those that have been silent for longest; none where all are alike."""
    places = grouped(ranks)
    if len(places) > 1 and len(places[0]) * 2 <= sum(map(len, places)):
        return places[0]
    first, last = min(one.written for one in ranks), max(one.written for one in ranks)
    return [one for one in ranks if one.written < first + APART] if last - first >= APART else []


def grouped(ranks: Iterable[Rank]) -> list[list[Rank]]:
    """Return the ranks with a stack by where they are, the fewest first."""
    found: dict[str, list[Rank]] = {}
    for one in ranks:
        if one.stack:
            found.setdefault(one.place, []).append(one)
    return sorted(found.values(), key=lambda group: (len(group), group[0].rank))


def explain(ranks: Sequence[Rank], seconds: float) -> list[str]:
    """Return lines: that no rank has written for SECONDS, which ones are behind, and where the ranks are."""
    late, places = behind(ranks), grouped(ranks)
    lines = [f"no rank has written anything for {seconds:.0f} s" + (f"; behind: {names(late)}" if late else "")]
    for group in places[:SHOWN]:
        lines.append(f"  in {group[0].place}: {names(group)}")
        if group[0] in late or len(places) == 1:
            lines += [f"      {short(frame)}" for frame in group[0].stack[:FRAMES]]
    if len(places) > SHOWN:
        lines.append(f"  and {len(places) - SHOWN} more places")
    silent = [one for one in ranks if not one.stack]
    if silent:
        oldest = sorted(silent, key=lambda one: (one.written, one.rank))
        when = ", ".join(f"rank {one.rank} on {one.node} at {clock(one.written)}" for one in oldest[:SHOWN])
        more = f" and {len(silent) - SHOWN} later ones" if len(silent) > SHOWN else ""
        lines.append(f"  without a stack, wrote last: {when}{more}")
    return lines


def explain_mounts(mounts: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a line for each fault of a network file system. MOUNTS: {node: faults in words}; many nodes may have the same one."""
    nodes: dict[str, list[str]] = {}
    for node, faults in mounts.items():
        for fault in faults:
            nodes.setdefault(fault, []).append(node)
    more = {fault: f" and {len(on) - SHOWN} more" if len(on) > SHOWN else "" for fault, on in nodes.items()}
    return [f"  {fault}, on {', '.join(on[:SHOWN])}{more[fault]}" for fault, on in nodes.items()][:SHOWN]


def names(ranks: Sequence[Rank]) -> str:
    """Return `rank 1 on gpu-2 and rank 3 on gpu-4`, or a part of them."""
    found = " and ".join(f"rank {one.rank} on {one.node}" for one in ranks[:SHOWN])
    return found + (f" and {len(ranks) - SHOWN} more" if len(ranks) > SHOWN else "")


def short(frame: str) -> str:
    """Return a frame with the last two parts of its path."""
    return re.sub(r"^.*/([^/]+/[^/]+)$", r"\1", frame)


def clock(seconds: float) -> str:
    """Return a time of day."""
    return time.strftime("%H:%M:%S", time.localtime(seconds))


def ranks_of(states: Mapping[str, Mapping | None], stacks: Mapping[str, Mapping]) -> list[Rank]:
    """Return the ranks of all nodes: `written` of each state, and the stacks that the nodes told."""
    return [
        Rank(int(rank), node, written, tuple((stacks.get(node) or {}).get(rank) or ()))
        for node, state in states.items()
        for rank, written in ((state or {}).get("written") or {}).items()
    ]
