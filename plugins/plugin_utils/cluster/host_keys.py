# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""By which host key the cluster knows each node: what former runs recorded holds until an administrator accepts another. Pure."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping

from ..problems.problem import Problem
from .records import Record, agreed, newest_first


def pinned_keys(names: Iterable[str], records: Iterable[Record]) -> dict[str, str]:
    """Return {name: host key} for those that are known.

    The others know it better than the node itself: a machine that answers in its place writes there what it likes. Where they do not agree,
    most of them count; where as many say one thing as another, what the node itself recorded, then the newest.
    """
    ordered = newest_first(records)
    pins: dict[str, str] = {}
    for name in names:
        told = [(record.owner, key) for record in ordered if (key := record.host_key(name))]
        own = [key for owner, key in told if owner == name]
        by_others = [key for owner, key in told if owner != name]
        known = agreed(by_others, own) if by_others else next(iter(own), None)
        pins.update({name: known} if known else {})
    return pins


def changed_keys(
    present: Mapping[str, Mapping[str, list[str]]], pins: Mapping[str, str], accepted: Mapping[str, str]
) -> list[Problem]:
    """Return a problem for each node that no longer has the host key by which it is known.

    present: {name: {all: its host keys, usable: those it may be known by, the first one first}}; accepted: {name:
    fingerprint} of keys that an administrator compared and accepts
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
