# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The distributions that lab hosts can be, and how a Debian image becomes one that answers like another."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import yaml

from ..progress import LabError
from . import el, ubuntu

DEFAULT = "debian12"


@dataclass(frozen=True)
class Distribution:
    name: str
    suite: str
    published: str
    nvidia: str
    archive: str | None = None
    release: str | None = None
    retired: bool = False
    os_release: dict = field(default_factory=dict, hash=False)

    @property
    def family(self) -> str:
        return "el" if self.release else "debian"

    @property
    def is_replica(self) -> bool:
        """False for Debian itself, and where hosts start from the real image."""
        return bool(self.os_release) and not self.image

    @property
    def image(self) -> str | None:
        """Return the distribution's own image to start from: below LAB_REGISTRY, or the one that LAB_IMAGE names."""
        registry = os.environ.get("LAB_REGISTRY")
        return os.environ.get("LAB_IMAGE") or (f"{registry}/{self.published}" if registry else None)

    @property
    def packages(self) -> list[str]:
        """Return the packages that the image has beyond Debian's own list."""
        if not self.is_replica:
            return []
        return el.PACKAGES if self.family == "el" else ubuntu.PACKAGES.get(self.suite, [])

    def disguise(self) -> str:
        """Shell lines, in a root named $root, that make a replica of a Debian; nothing for Debian."""
        if not self.is_replica:
            return ""
        text = "".join(f'{key}="{value}"\n' for key, value in self.os_release.items())
        lines = f'rm -f "$root/etc/os-release"\ncat > "$root/etc/os-release" <<\'END\'\n{text}END\n'
        return lines + (el.disguise(self) if self.family == "el" else ubuntu.disguise(self))


@cache
def _table() -> dict[str, Distribution]:
    file = Path(__file__).with_name("distributions.yml")
    rows = yaml.safe_load(file.read_text(encoding="utf-8"))
    return {name: Distribution(name, **row) for name, row in rows.items()}


def names() -> list[str]:
    return list(_table())


def get(name: str) -> Distribution:
    if name not in _table():
        raise LabError(f"the lab has no distribution {name!r}: use one of {', '.join(names())}")
    return _table()[name]


def sources(distribution: Distribution, url: str, key: str) -> str:
    """Shell lines, run in the host, that set up the stand-in for the distribution's archive."""
    return (el if distribution.family == "el" else ubuntu).sources(distribution, url, key)
