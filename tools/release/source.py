# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what a release is made of: the commit, its tags, galaxy.yml and the changelog."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import yaml


@dataclass(frozen=True)
class Source:
    """The checkout that a release is made of; time: of the commit, in seconds since 1970."""

    commit: str
    time: int
    tags: tuple[str, ...]
    changed: tuple[str, ...]  # files that differ from the commit, or that git does not know
    namespace: str
    name: str
    version: str
    description: str
    repository: str
    released: tuple[str, ...]  # versions of the changelog
    fragments: tuple[str, ...]  # of changes that no release of the changelog has

    @property
    def label(self) -> str:
        """Return the name that the archive begins with."""
        return f"{self.namespace}-{self.name}-{self.version}"


def read(checkout: Path) -> Source:
    """Return the source of a release."""
    galaxy = yaml.safe_load((checkout / "galaxy.yml").read_text(encoding="utf-8"))
    changelog = yaml.safe_load((checkout / "changelogs" / "changelog.yaml").read_text(encoding="utf-8"))
    return Source(
        commit=git(checkout, "rev-parse", "HEAD").strip(),
        time=int(git(checkout, "show", "--no-patch", "--format=%ct", "HEAD")),
        tags=tuple(git(checkout, "tag", "--points-at", "HEAD").splitlines()),
        changed=tuple(line[3:] for line in git(checkout, "status", "--porcelain").splitlines()),
        **{key: galaxy[key] for key in ("namespace", "name", "version", "description", "repository")},
        released=tuple(changelog["releases"]),
        fragments=tuple(sorted(path.name for path in (checkout / "changelogs" / "fragments").glob("*.y*ml"))),
    )


def git(checkout: Path, *arguments: str) -> str:
    """Return the output of git."""
    command = ["git", "-C", str(checkout), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
