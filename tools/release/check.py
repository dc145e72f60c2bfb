# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refuse what must not be released, with one sentence. Pure."""

from __future__ import annotations

import re

from .source import Source

VERSION = re.compile(r"v?\d+\.\d+\.\d+")


def refusal(source: Source, rehearsal: bool = False) -> str | None:
    """Return the first reason against this release, or None; a rehearsal needs no tag, and releases the fragments in its copy."""
    if source.changed:
        return f"The working tree differs from commit {source.commit[:12]} ({_some(source.changed)}); commit the changes or remove them."
    if source.version not in source.released and not (rehearsal and source.fragments):
        return (
            f"changelogs/changelog.yaml has no release {source.version}, the version of galaxy.yml; "
            "run make changelog and commit what it writes."
        )
    return None if rehearsal else _tag(source) or _fragments(source)


def _tag(source: Source) -> str | None:
    if source.version in source.tags:
        return None
    other = [tag for tag in source.tags if VERSION.fullmatch(tag)]
    if other:
        return f"Tag {other[0]} of commit {source.commit[:12]} is not the version of galaxy.yml, {source.version}; correct either of them."
    return (
        f"Commit {source.commit[:12]} has no tag {source.version}; "
        f"set it with git tag --sign {source.version}, or rehearse with make release DRY_RUN=1."
    )


def _fragments(source: Source) -> str | None:
    if not source.fragments:
        return None
    return f"No release of the changelog has {_some(source.fragments)} of changelogs/fragments; run make changelog and commit what it writes."


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
