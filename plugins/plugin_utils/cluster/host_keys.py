# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""By which host key the cluster knows each node: what former runs recorded holds until somebody accepts another. Pure."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..problems.problem import Problem


@dataclass(frozen=True)
class Record:
    """One node's record of all nodes, and when it was written."""

    owner: str
    text: str
    time: float

    def host_key(self, name: str) -> str | None:
        """Return the host key by which a node is known here."""
        entries: list[Mapping[str, Any]] = json.loads(self.text)
        return next((entry.get("host_key") for entry in entries if entry["name"] == name), None)


def newest_first(records: Iterable[Record]) -> list[Record]:
    """Return the records in the order in which they count: a node that was away for a while knows what was."""
    return sorted(records, key=lambda record: (-record.time, record.owner))


def pinned_keys(names: Iterable[str], records: Iterable[Record]) -> dict[str, str]:
    """Return {name: host key} for those that are known.

    The others know it better than the node itself: whoever answers in its place writes there what they like.
    """
    ordered = newest_first(records)
    pins: dict[str, str] = {}
    for name in names:
        by_others = sorted(ordered, key=lambda record: record.owner == name)  # stable: the newest of the others first
        known = [key for key in (record.host_key(name) for record in by_others) if key]
        pins.update({name: known[0]} if known else {})
    return pins


def changed_keys(
    present: Mapping[str, Mapping[str, list[str]]], pins: Mapping[str, str], accepted: Mapping[str, str]
) -> list[Problem]:
    """Return a problem for each node that no longer has the host key by which it is known.

    present: {name: {all: its host keys, usable: those it may be known by, the first one first}}; accepted: {name:
    fingerprint} of keys that somebody compared and takes
    """
    return [
        Problem("changed_host_key", name, {"key": _told(keys["usable"][:1]), "known": _told([pins[name]])})
        for name, keys in present.items()
        if name in pins
        and pins[name] not in keys["all"]
        and not (keys["usable"] and accepted.get(name) == fingerprint(keys["usable"][0]))
    ]


def _told(keys: Iterable[str]) -> str:
    return next((fingerprint(key) for key in keys), "none")


def fingerprint(key: str) -> str:
    """Return the fingerprint of a public key as ssh-keygen -l shows it: kind and blob of RFC 4253, SHA-256, without padding."""
    digest = hashlib.sha256(base64.b64decode(key.split()[1])).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")
