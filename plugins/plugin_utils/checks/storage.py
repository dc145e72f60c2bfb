# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check that the file systems which others mount are there, as declared, and answer the training user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ...module_utils.storage.network_mounts import in_words
from ..documents.parsing import parse
from .check import PLAY, Check, compared, joined

GB = 10**9
MOUNT = "look at the mount, at its server and at the network to it: the collection mounts no storage"


@dataclass(frozen=True)
class Declared:
    """An entry of verify_storage_mounts."""

    path: str
    type: str | None = None
    min_free_gb: float = 0.0
    writable: bool = True


@dataclass(frozen=True)
class Mount:
    """The mount at a path, as it answered module node_probe; see module_utils/storage/network_mounts.py."""

    type: str = ""
    source: str = ""
    fault: str | None = None
    free: int | None = None  # bytes
    size: int | None = None
    writable: bool | None = None


@dataclass(frozen=True)
class _Probed:
    mounts: dict[str, Mount | None] = field(default_factory=dict)


def checks(declared: Iterable[Mapping[str, Any]], probe: Mapping | None) -> Iterator[Check]:
    """Yield a check for each file system that is declared. probe: what module node_probe returned, None where it did not run."""
    probed = parse(_Probed, probe, "node_probe").mounts if probe else {}
    for one in map(as_declared, declared):
        known = one.path in probed
        mount = probed.get(one.path)
        against = faults(one, mount) if known else []
        agrees = not against if known else None
        name = f"storage_mount {one.path}"
        why = (joined(against), MOUNT) if known else ("the node was not probed", PLAY)
        yield compared(name, "health", expected(one), joined(against) or shown(mount), agrees, *why)


def as_declared(entry: Mapping[str, Any]) -> Declared:
    """Return an entry with its values as role verify's argument specification converts them."""
    found = {**entry, "min_free_gb": float(entry.get("min_free_gb") or 0)}
    if "writable" in entry:
        found["writable"] = boolean(entry["writable"])
    return Declared(**found)


def expected(one: Declared) -> str:
    """Return the declaration, in words."""
    words = [one.type or "a file system", "that the training user may write to" if one.writable else "that answers"]
    return " ".join(words) + (f", {one.min_free_gb:,g} GB free" if one.min_free_gb else "")


def shown(mount: Mount | None) -> str | None:
    if mount is None:
        return None
    return f"{in_words(asdict(mount))}, {_gigabytes(mount.free)} free of {_gigabytes(mount.size)}"


def faults(one: Declared, mount: Mount | None) -> list[str]:
    """Return the faults, in words; where it does not answer, nothing else is known."""
    if mount is None:
        return ["nothing is mounted there" if one.path.startswith("/") else "the path is not absolute"]
    found = [f"{mount.type} of {mount.source} is mounted there"] if one.type not in (None, mount.type) else []
    if mount.fault:
        return [*found, in_words(asdict(mount))]
    if one.writable and mount.writable is not True:
        found.append("the training user may not write there")
    if mount.free is None or mount.free < one.min_free_gb * GB:
        found.append(f"{_gigabytes(mount.free)} are free")
    return found


def _gigabytes(number: int | None) -> str:
    return "an unknown size" if number is None else f"{number / GB:,.0f} GB"
