# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stub package, and how a row of the tables in data/ becomes one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

DATA = Path(__file__).with_name("data")


@dataclass(frozen=True)
class Package:
    """One stub. ``version`` as the package manager writes it (with release, without epoch); ``files`` see payload.py."""

    name: str
    version: str
    architecture: str = "amd64"
    epoch: int = 0
    depends: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    obsoletes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    python: str = ""  # whose files: an interpreter of tests/lab/interpreters

    @property
    def upstream(self) -> str:
        return self.version.rpartition("-")[0] or self.version


@cache
def table(name: str) -> dict:
    return yaml.safe_load((DATA / f"{name}.yml").read_text(encoding="utf-8"))


def numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def version_of(row: dict) -> str:
    """YAML reads 580.142 as a number."""
    return str(row["version"])


def happened(entry: dict, branch: int) -> bool:
    """Return True if a package exists in a branch: ``when`` (with "!": not yet) and ``unless`` name a change of drivers.yml."""
    changes = table("drivers")["changes"]
    when, unless = entry.get("when", ""), entry.get("unless")
    if when and (branch >= changes[when.lstrip("!")]) == when.startswith("!"):
        return False
    return not unless or branch < changes[unless]


def expand(entry: dict, values: dict, version: str, manager: str) -> Package:
    """Return a row with its placeholders filled; ``owns`` is a virtual name that only one package may have."""

    def filled(key: str) -> list[str]:
        return [text.format(**values) for text in entry.get(key, ())]

    architecture = entry.get("architecture", "amd64" if manager == "apt" else "x86_64")
    name, owned = entry["name"].format(**values), filled("owns")
    return Package(
        name,
        version,
        {"all": "noarch"}.get(architecture, architecture) if manager == "dnf" else architecture,
        entry.get("epoch", values.get("epoch", 0)),
        tuple(filled("depends") + filled("requires")),
        tuple(filled("provides") + [o for o in owned if o != name]),
        tuple(filled("conflicts") + owned),
        tuple(filled("replaces") + owned),
        tuple(filled("obsoletes")),
        tuple(entry.get("files", ())),
        entry.get("python", ""),
    )
