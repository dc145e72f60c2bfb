# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a lock: packages with one version and their SHA-256, and nothing else that an installer would obey. Pure.

A lock comes from a node, and root installs it on all others. So this reads less than pip and uv do: no option, address, path or variable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

with suppress(ImportError):  # ansible-core depends on it; only ansible-test's import check runs without it
    from packaging.markers import InvalidMarker, Marker
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name
    from packaging.version import InvalidVersion, Version

from ..problems.problem import Problem

__all__ = ["LONGEST", "LockError", "Pin", "lock_problem", "read_pins", "shown"]

# Characters, of a text and of what stands before the hashes; a lock of two hundred packages with all their wheels has a tenth of that.
LONGEST, LONGEST_PIN = 4 << 20, 500
MOST_LINES = 50_000
SHOWN = 60
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_PIN = re.compile(rf"(?P<name>{_NAME})(?:\[{_NAME}(?:,{_NAME})*\])?==(?P<version>[A-Za-z0-9][A-Za-z0-9.!+_-]*)")
_MARKER = re.compile(r"[A-Za-z0-9_.,'\"=<>!~() *+-]+")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_PLAIN = re.compile(r"[\x20-\x7e]*")


@dataclass(frozen=True)
class Pin:
    """A version, the SHA-256 of each of its files that may be installed, and whether it is for some nodes only."""

    version: str
    hashes: frozenset[str]
    conditional: bool = False


class LockError(ValueError):
    """A text that is not a lock. ``problem``: why."""

    def __init__(self, code: str, subject: str, **detail: object):
        super().__init__(code)
        self.problem = Problem(code, subject, detail)


def read_pins(text: str) -> dict[str, Pin]:
    """Return {canonical name: pin} of a lock; LockError for a text with anything but pins and comments."""
    pins: dict[str, Pin] = {}
    for line in _lines(text):
        words = line.split()
        first = next((number for number, word in enumerate(words) if word.startswith("--")), len(words))
        pinned, semicolon, marker = " ".join(words[:first]).partition(";")
        found = _PIN.fullmatch(pinned.strip()) if len(pinned) + len(marker) <= LONGEST_PIN else None
        hashes = [_HASH.fullmatch(word) for word in words[first:]]
        if not (found and hashes and all(hashes) and _is_valid(found["version"], marker if semicolon else None)):
            raise LockError("lock_line", shown(line))
        name = str(canonicalize_name(found["name"]))
        if name in pins:
            raise LockError("lock_twice", name)
        pins[name] = Pin(found["version"], frozenset(one[1] for one in hashes if one), bool(semicolon))
    return pins


def lock_problem(text: str, requirements: Iterable[str]) -> Problem | None:
    """Return the reason why a text is not a lock of these requirements, None where it is one."""
    try:
        pins = read_pins(text)
    except LockError as error:
        return error.problem
    return next((_unmet(line, pins) for line in requirements if _unmet(line, pins)), None)


def _unmet(line: str, pins: Mapping[str, Pin]) -> Problem | None:
    requirement = Requirement(line)
    pin = pins.get(canonicalize_name(requirement.name))
    if pin and requirement.specifier.contains(pin.version, prereleases=True):
        return None
    return Problem("lock_unmet", line, {"found": pin.version if pin else "nothing"})


def _lines(text: str) -> Iterator[str]:
    """Yield the lines as an installer reads them, without comments, in which nothing can be hidden."""
    if len(text) > LONGEST or text.count("\n") > MOST_LINES:
        raise LockError("lock_long", str(len(text)))
    lines: list[str] = []
    for line in text.split("\n"):
        # pip ends lines at more characters than uv does, and each has its own idea of a comment that goes on.
        comment = line.lstrip(" ").startswith("#")
        goes_on = bool(lines) and lines[-1].endswith("\\")
        plain = line.isprintable() and not line.endswith("\\") if comment else _PLAIN.fullmatch(line)
        if not plain or (goes_on and (comment or not line.strip())):
            raise LockError("lock_line", shown(line or lines[-1]))
        lines.append("" if comment else line)
    yield from (line for line in "\n".join(lines).replace("\\\n", " ").split("\n") if line.strip())


def _is_valid(version: str, marker: str | None) -> bool:
    """Return True if there are such a version and, where it is not None, such a marker."""
    try:
        Version(version)
        if marker is not None:
            Marker(marker if _MARKER.fullmatch(marker) else "")
    except (InvalidVersion, InvalidMarker, RecursionError):
        return False
    return True


def shown(line: str) -> str:
    """Return a line as a sentence may quote it, whatever a node wrote there."""
    return ascii(line[:SHOWN] + ("…" if len(line) > SHOWN else ""))
