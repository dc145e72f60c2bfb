# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records of nodes about each other from former runs, and which of them count: each of them may say what it likes. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..documents import values
from ..documents.values import Unfit
from ..problems.problem import Problem

T = TypeVar("T", bound=Hashable)
MOST_SOURCES = 100


@dataclass(frozen=True)
class Record:
    """One node's record of all nodes by their names, and when it was written."""

    owner: str
    entries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    time: float = 0.0

    def host_key(self, name: str) -> str | None:
        """Return the host key by which a node is known here."""
        return (self.entries.get(name) or {}).get("host_key")


def read_record(owner: str, given: Mapping[str, Any]) -> tuple[Record | None, list[Problem]]:
    """Return the record of a node's file, and its problems. given: {text, time}, as module ssh_keys returns them.

    An entry that does not fit counts as if it were not there; an invalid file is a problem of the node whose it is.
    """
    try:
        found = json.loads(values.file_content(given.get("text")))
        written = float(values.number(given.get("time")))
    except (ValueError, RecursionError):
        return None, [Problem("unfit_record", owner)]
    if not isinstance(found, list):
        return None, [Problem("unfit_record", owner)]
    entries: dict[str, Mapping[str, Any]] = {}
    unfit = 0
    for one in found:
        try:
            entry = _entry(one)
            entries.setdefault(entry["name"], entry)
        except Unfit:
            unfit += 1
    return Record(owner, entries, written), [Problem("unfit_entries", owner, {"count": unfit})] if unfit else []


def _entry(given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise Unfit("a mapping")
    name = given.get("nodename")
    return {
        "name": values.text(253)(given.get("name")),
        "address": values.address(given.get("address")),
        "nodename": values.host_name(name) if name not in (None, "(none)", "") else None,
        "sources": values.listing(values.network, MOST_SOURCES)(given.get("sources", [])),
        **{key: _key(given.get(key)) for key in ("host_key", "public_key")},
        **({"next_key": _key(given["next_key"])} if given.get("next_key") is not None else {}),
    }


def _key(value: Any) -> str | None:
    return None if value is None else str(values.public_key(value))


def newest_first(records: Iterable[Record]) -> list[Record]:
    """Return the records in the order in which they count: a node that was away for a while knows what was."""
    return sorted(records, key=lambda record: (-record.time, record.owner))


def agreed(claims: Sequence[T], decisive: Sequence[T] = ()) -> T:
    """Return the claim of the most; of equally frequent claims a decisive one, else the first."""
    counts = Counter(claims)
    most = [one for one in dict.fromkeys(claims) if counts[one] == max(counts.values())]
    return next((one for one in most if one in decisive), most[0])


def recorded_nodes(names: Iterable[str], records: Iterable[Record]) -> dict[str, Mapping[str, Any]]:
    """Return the records of nodes that take no part: the one that most agree on, else the newest."""
    ordered = newest_first(records)
    found: dict[str, Mapping[str, Any]] = {}
    for name in names:
        claims = [json.dumps(record.entries[name], sort_keys=True) for record in ordered if name in record.entries]
        if claims:
            found[name] = json.loads(agreed(claims))
    return found
