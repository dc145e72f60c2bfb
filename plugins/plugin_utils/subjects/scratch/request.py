# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse a user's request to role scratch, and refuse invalid values before a node is contacted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from posixpath import normpath
from typing import Any

import yaml
from ansible.module_utils.parsing.convert_bool import boolean

from ...documents.parsing import parse
from ...problems.problem import Problem
from ..options import as_list

# The defaults of the role's variables (a test compares).
DEFAULTS: dict[str, Any] = {
    "scratch_state": "absent",
    "scratch_disks": [],
    "scratch_disk_count": 0,
    "scratch_min_size_gb": 0,
    "scratch_name": "scratch",
    "scratch_mount_point": "/scratch",
    "scratch_mount_options": ["noatime", "nofail"],
    "scratch_chunk_kib": 512,
    "scratch_owner": "",
    "scratch_group": "",
    "scratch_mode": "0755",
    "scratch_trim": True,
    "scratch_destroy_data": False,
}
# The user of the trainings, where no other user is named: the default of role cluster_ssh.
USER = "trainer"
TABLE = Path(__file__).resolve().parents[4] / "data" / "scratch" / "refused.yml"
_NAME = re.compile(r"(?!md\d+$)[A-Za-z_][A-Za-z0-9_-]{0,30}")
_OPTION = re.compile(r"[A-Za-z0-9_.:=/-]+")
_MODE = re.compile(r"[0-7]{4}")
# Directories of the system (hier(7)): a file system at one of them, or what it has, would be hidden.
SYSTEM = frozenset(
    ("bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "media", "mnt", "opt", "proc", "root", "run", "sbin", "srv")
    + ("sys", "tmp", "usr", "var")
)  # fmt: skip
CLOSED = frozenset(
    ("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "proc", "root", "run", "sbin", "sys", "tmp", "usr")
)


@dataclass(frozen=True)
class Refused:
    """An option of a mount that is refused by name."""

    name: str
    reason: str
    source: str


@dataclass(frozen=True)
class Request:
    """The options of module scratch."""

    disks: tuple[str, ...]
    count: int
    minimum_gb: int
    name: str
    mount_point: str
    options: tuple[str, ...]
    chunk_kib: int
    owner: str
    group: str
    mode: str
    trim: bool
    present: bool = False

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the options of the module that makes it."""
        found = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
        found.pop("present")
        return found

    @property
    def question(self) -> dict[str, Any]:
        """Return the options of the module that measures it."""
        return {key: self.arguments[key] for key in ("disks", "count", "minimum_gb", "mount_point")}


@cache
def refused() -> tuple[Refused, ...]:
    """Return the table; raise DocumentError for a row of the wrong shape."""
    rows: list[dict[str, Any]] = yaml.safe_load(TABLE.read_text(encoding="utf-8"))["rows"]
    return tuple(parse(Refused, row, f"refused[{number}]") for number, row in enumerate(rows))


def request(variables: Mapping[str, Any]) -> Request:
    """Return the request of the variables; those that are not set have their role's default."""
    given = {name: variables.get(name, default) for name, default in DEFAULTS.items()}
    return Request(
        present=given["scratch_state"] == "present",
        disks=tuple(map(str, as_list(given["scratch_disks"]))),
        count=int(given["scratch_disk_count"]),
        minimum_gb=int(given["scratch_min_size_gb"]),
        name=str(given["scratch_name"]),
        mount_point=str(given["scratch_mount_point"]),
        options=tuple(map(str, as_list(given["scratch_mount_options"]))),
        chunk_kib=int(given["scratch_chunk_kib"]),
        owner=str(given["scratch_owner"] or variables.get("cluster_ssh_user") or USER),
        group=str(given["scratch_group"]),
        mode=str(given["scratch_mode"]),
        trim=boolean(given["scratch_trim"], strict=False),
    )


def problems(wanted: Request) -> Iterator[Problem]:
    """Yield the problems of values that are not valid, or are refused by name; no fact of a node is needed for it."""
    for disk in wanted.disks:
        if not disk.startswith("/dev/") or normpath(disk) != disk or set(disk) & set("*?[]{}"):
            yield Problem("scratch_no_path", disk, {})
    if not _is_mount_point(wanted.mount_point):
        yield Problem("scratch_mount_point", wanted.mount_point, {})
    if not _NAME.fullmatch(wanted.name):
        yield Problem("scratch_name", wanted.name, {})
    if not _MODE.fullmatch(wanted.mode):
        yield Problem("scratch_mode", wanted.mode, {})
    if wanted.chunk_kib < 4 or wanted.chunk_kib & (wanted.chunk_kib - 1):
        yield Problem("scratch_chunk", str(wanted.chunk_kib), {})
    for name, number in (("scratch_disk_count", wanted.count), ("scratch_min_size_gb", wanted.minimum_gb)):
        if number < 0:
            yield Problem("scratch_negative", name, {"value": number})
    yield from _options(wanted.options)


def _is_mount_point(path: str) -> bool:
    """Return True if a file system may be mounted there without hiding what belongs to the system."""
    parts = path.split("/")[1:]
    own = path.startswith("/") and normpath(path) == path and path.isprintable() and not path.startswith("//")
    return own and path != "/" and parts[0] not in CLOSED and path.strip("/") not in SYSTEM


def _options(options: tuple[str, ...]) -> Iterator[Problem]:
    table = {row.name: row for row in refused()}
    for option in options:
        row = table.get(option.partition("=")[0])
        if row:
            yield Problem("scratch_refused", option, {"reason": row.reason, "source": row.source})
        elif not _OPTION.fullmatch(option):
            yield Problem("scratch_no_option", option, {})
