# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of data/stack/torch.yml: what the package index says is written, what a person verified stays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.torch import (
    BUILD_COLUMNS,
    COLUMNS,
    SOURCE,
    build_facts,
    facts,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.releases.wheels import Release
from packaging.version import Version
from ruamel.yaml.comments import CommentedMap

from .document import styled

COMPANIONS = ("torchvision", "torchaudio")
# Columns that only the index fills; it is free to change them.
OWNED = ("released", "platforms", *COMPANIONS)


def missing(rows: Iterable[Mapping], published: Iterable[str]) -> list[str]:
    """Return the published releases that have no row; those older than all rows are left out on purpose."""
    known = {Version(row["version"]) for row in rows}
    return [one for one in published if Version(one) not in known and Version(one) > min(known)]


def update(row: CommentedMap, release: Release, today: str) -> list[str]:
    """Fill what a row lacks or has unverified; return what changed and what differs."""
    build = next(one for one in row["builds"] if one.get("default"))
    said = [_learn(row, name, value) for name, value in facts(release).items()]
    said += [_learn(build, name, value) for name, value in build_facts(release).items()]
    changes = [text for text, changed in filter(None, said) if changed]
    if changes:
        _put(row, "read", today)
        if SOURCE not in row["sources"]:
            row["sources"].append(SOURCE)
    return [text for text, _changed in filter(None, said)]


def _learn(row: CommentedMap, name: str, value: Any) -> tuple[str, bool] | None:
    """Write a column unless a person verified another value; return what to say and whether the row changed."""
    have, doubtful = row.get(name), name in row.get("unverified", ())
    if value is None or (have == value and not doubtful):
        return None
    if have is not None and have != value and not doubtful and name not in OWNED:
        return f"{name} {_text(have)} stays, the index says {_text(value)}", False
    if have != value:
        _put(row, name, value)
    if doubtful:
        row["unverified"].remove(name)
        if not row["unverified"]:
            del row["unverified"]
    return f"{name} {_text(have)} -> {_text(value)}" if have != value else f"{name} {_text(value)} verified", True


def _put(row: CommentedMap, name: str, value: Any) -> None:
    """Set a column, a new one at its place."""
    if name in row:
        row[name] = styled(value)
    else:
        order = BUILD_COLUMNS if name in BUILD_COLUMNS else COLUMNS
        place = sum(1 for one in row if order.index(one) < order.index(name))
        row.insert(place, name, styled(value))


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {one}" for name, one in value.items())
    return " ".join(value) if isinstance(value, list) else str(value)
