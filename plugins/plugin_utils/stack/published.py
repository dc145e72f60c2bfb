# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases that the tables lack and whose rows come from elsewhere: laid over the tables, and told in the stack."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

from .components import component
from .libraries import Version
from .model import Solution
from .rows import PublishedRow
from .subjects import Subjects
from .tables import Tables
from .versions import version


def with_rows(tables: Tables, published: Iterable[PublishedRow]) -> Tables:
    """Return the tables with the rows of releases that they lack; the same ones for the same rows, so that verdicts are kept."""
    missing = [one for one in published if one["version"] not in _known(tables, one["component"])]
    return _laid_over(tables, json.dumps(missing, sort_keys=True)) if missing else tables


@lru_cache(maxsize=16)
def _laid_over(tables: Tables, text: str) -> Tables:
    published: list[PublishedRow] = json.loads(text)
    subjects: dict[str, Any] = {**tables.subjects}
    for one in published:
        name = _table(one["component"])
        subjects[name] = {**subjects[name], "rows": sorted([*subjects[name]["rows"], one["row"]], key=_age)}
    return replace(tables, subjects=cast(Subjects, subjects), published=(*tables.published, *published))


def planned_rows(tables: Tables, chosen: Solution) -> list[PublishedRow]:
    """Return the rows that a solution stands on and the tables lack."""
    planned = {(one.component, one.version) for one in chosen.values()}
    return [one for one in tables.published if (one["component"], one["version"]) in planned]


def published_warnings(tables: Tables, chosen: Solution) -> list[str]:
    """Return a sentence for each release whose limits were not verified."""
    found = {
        f"{_title(one['component'])} {one['version']} is not in the tables: its limits come from its own metadata, read from the "
        f"{one['source']} on {one['read']}, and have not been verified"
        for one in planned_rows(tables, chosen)
    }
    return sorted(found)


def _title(name: str) -> str:
    overview = component(name).overview
    return overview.title if overview else name


def _table(name: str) -> str:
    """Return the table that has a component's releases."""
    return component(name).tables[0].name


def _known(tables: Tables, name: str) -> set[str]:
    return {release for row in tables.rows(component(name).tables[0]) for release in _releases(row)}


def _releases(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the releases that a row is about: one, those of a minor, or those of several packages."""
    several = [*row.get("releases", ()), *(one for found in row.get("wheels", {}).values() for one in found)]
    yield from several or [row["version"]]


def _age(row: Mapping[str, Any]) -> Version:
    return version(next(_releases(row)))
