# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collective in which a run has stalled, and the ranks that it waits for. Pure.

What the dumps of their flight recorders say; where there are none, as with Gloo, which ranks had not given up when others had.

Collectives of a group are numbered, the same on every rank. The first that not every rank has completed is the one that stalled: ranks
that have not begun it kept the others waiting. Ranks run ahead of their GPUs, so what they begun last says nothing by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..documents.training import Stall

# Why a collective stalled: ranks that did not begin it, that wrote no dump, that began something else, or none of these; without any
# dump: ranks that ran when others gave up.
ABSENT, SILENT, DIFFERENT, JOINED, RUNNING = "absent", "silent", "different", "joined", "running"
SHOWN = 3  # ranks that a sentence names


def find_stall(outcomes: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the collective that stalled first, {code, ranks, operation, sequence, group, sizes, place, waiting}; None without one.

    ranks: [{rank, node}] on which it failed, node None where it is not known; waiting: how many ranks had begun it
    outcomes: of nodes, with `ranks` (numbers of those that started), `waited` (of those that gave up) and `flight` (groups of each
    rank's dump, flight.collect)
    """
    return _recorded(outcomes) or _waited_for(outcomes)


def _recorded(outcomes: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the stall that the dumps record."""
    nodes = {rank: outcome["node"] for outcome in outcomes for rank in outcome.get("ranks") or []}
    dumps = {int(rank): groups for outcome in outcomes for rank, groups in (outcome.get("flight") or {}).items()}
    found = [
        stall
        for name in sorted({name for groups in dumps.values() for name in groups})
        for stall in _stalls(name, dumps, nodes)
    ]
    first = min(found, key=lambda stall: stall["created"], default=None)
    if first is None:
        return None
    ranks = [{"rank": rank, "node": nodes.get(rank)} for rank in first["ranks"]]
    return {key: value for key, value in {**first, "ranks": ranks}.items() if key != "created"}


def _waited_for(outcomes: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the ranks that had not given up when others had; None where a rank failed by itself, which is what they waited for.

    torchrun may have ended a rank before it gave up, too, where another one of its node had: those of other nodes are told first.
    """
    waited = {rank for outcome in outcomes for rank in outcome.get("waited") or []}
    failed = any(not one["lost_peer"] for outcome in outcomes for one in outcome.get("failures") or [])
    left = [(rank, one) for one in outcomes for rank in one.get("ranks") or [] if rank not in waited]
    elsewhere = [(rank, one) for rank, one in left if not one.get("waited")]
    if failed or not waited or not left:
        return None
    ranks = [{"rank": rank, "node": one["node"]} for rank, one in sorted(elsewhere or left, key=lambda pair: pair[0])]
    return {"code": RUNNING, "ranks": ranks, "waiting": len(waited)}


def _stalls(name: str, dumps: Mapping[int, Mapping[str, Any]], nodes: Mapping[int, str]) -> Iterator[dict[str, Any]]:
    """Yield the stalled collective of a group, if there is one."""
    groups = {rank: groups[name] for rank, groups in dumps.items() if name in groups}
    sequence = min(group["completed"] for group in groups.values()) + 1
    begun = {rank: one for rank, group in groups.items() if (one := _collective(group, sequence))}
    if not begun:
        return
    members = _members(groups, nodes)
    absent = [rank for rank in members if rank in groups and groups[rank]["enqueued"] < sequence]
    silent = [rank for rank in members if rank not in groups]
    usual = Counter(map(_kind, begun.values())).most_common(1)[0][0]
    different = [rank for rank, one in sorted(begun.items()) if _kind(one) != usual]
    code, ranks = next(
        (pair for pair in ((ABSENT, absent), (DIFFERENT, different), (SILENT, silent)) if pair[1]), (JOINED, [])
    )
    if code == JOINED and all(one["state"] == "completed" for one in begun.values()):
        return
    shown = min((one for rank, one in begun.items() if rank not in ranks), key=lambda one: one["created"])
    yield {
        "code": code,
        "ranks": ranks,
        "operation": shown["operation"],
        "sequence": sequence,
        "group": [*groups.values()][0]["description"] or name,
        "sizes": shown["sizes"],
        "place": shown["place"],
        "waiting": len(begun) - (len(different) if code == DIFFERENT else 0),
        "created": shown["created"],
    }


def _members(groups: Mapping[int, Mapping[str, Any]], nodes: Mapping[int, str]) -> list[int]:
    """Return the ranks of a group: as a dump names them; the whole run's for the group of all; else those that have one."""
    named = next((group["ranks"] for group in groups.values() if group["ranks"]), None)
    if named:
        return sorted(named)
    whole = any(group["description"] == "default_pg" for group in groups.values())
    return sorted({*groups, *nodes} if whole else groups)


def _kind(one: Mapping[str, Any]) -> tuple[str, str]:
    """Return the properties that have to be the same on every rank: the sizes of other operations may differ."""
    sized = one["operation"].rpartition(":")[2] in ("all_reduce", "broadcast")
    return one["operation"], str(one["sizes"]) if sized else ""


def _collective(group: Mapping[str, Any], sequence: int) -> dict[str, Any] | None:
    return next((one for one in group["collectives"] if one["sequence"] == sequence), None)


def describe_stall(stall: Stall) -> str:
    """Return one clause about a stall."""
    place = f", {stall.place}" if stall.place else ""
    what = f"{stall.operation} (collective {stall.sequence} of {stall.group}{place})"
    who = " and ".join(f"rank {one.rank}" + (f" on {one.node}" if one.node else "") for one in stall.ranks[:SHOWN])
    if len(stall.ranks) > SHOWN:
        who += f" and {len(stall.ranks) - SHOWN} more"
    waited = f"{stall.waiting} rank{'s' * (stall.waiting != 1)} waited"
    return {
        ABSENT: f"{who} did not begin {what}, in which {waited}",
        SILENT: f"{who} left no record, and {waited} in {what}",
        RUNNING: f"{stall.waiting} rank{'s' * (stall.waiting != 1)} gave up waiting, and {who} had not",
        DIFFERENT: f"{who} began another operation, or one of another size, than {what}, in which {waited}",
    }.get(stall.code, f"all ranks had begun {what}, but none got further; look at the network between them")
