# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables that a question is put to: the collection's, with rows of the releases that it names and they lack.

Rows come from the lock, else from the package index, which is the one place of the plan that asks anything outside.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ..problems.problem import Problem, ProblemError
from ..releases.index import Index, NoAnswer
from ..releases.rows import READERS, NoRelease, published_rows
from ..stack.input_error import InputError
from ..stack.inputs import read_question
from ..stack.published import with_rows
from ..stack.rows import PublishedRow
from ..stack.tables import Tables, load
from .lock import read

Rows = tuple[PublishedRow, ...]


def index_of(variables: Mapping[str, Any]) -> str | None:
    """Return the package index that rows may be read from: '' for the one that pip and uv are configured for, None for none."""
    is_read = boolean(variables.get("stack_read_index", True), strict=False)
    if not is_read or boolean(variables.get("python_env_no_index", False), strict=False):
        return None
    return str(variables.get("python_env_index_url") or "")


def tables_for(
    question: Mapping[str, Any], lock: str | None = None, renew: bool = False, tables: Tables | None = None
) -> Tables:
    """Return the tables with what a question needs in addition to them; raise ProblemError for a release that no index has.

    question: as for stack.inputs.read_question, and its index (see index_of); lock: the path of a lock file, whose rows are
    taken where the index is not asked: first, or with renew where it has none
    """
    tables = tables or load()
    problem = _unknown(tables, question)
    if problem is None:
        return tables
    locked = _rows(read(lock) or ())
    tables = with_rows(tables, () if renew else locked)
    while problem := _unknown(tables, question):
        rows, why = _read(tables, problem.subject, str(problem.detail["value"]), question.get("index"))
        tables = with_rows(tables, rows or locked)
        left = _unknown(tables, question)
        if left and left.subject == problem.subject:
            raise ProblemError(problem, *([why] if why else []))
    return tables


def with_locked(tables: Tables, entries: Iterable[Mapping[str, Any]]) -> Tables:
    """Return the tables with the rows of a lock's entries."""
    return with_rows(tables, _rows(entries))


def _rows(entries: Iterable[Mapping[str, Any]]) -> list[PublishedRow]:
    return [one for entry in entries for one in entry["stack"].get("published") or ()]


def _unknown(tables: Tables, question: Mapping[str, Any]) -> Problem | None:
    """Return the problem that the tables lack a release that the index can be asked for."""
    try:
        read_question(tables, question)
    except InputError as error:
        problem = error.problems[0]
        return problem if problem.code == "unknown_version" and problem.subject in READERS else None
    return None


@lru_cache(maxsize=64)
def _read(tables: Tables, name: str, constraint: str, url: str | None) -> tuple[Rows, Problem | None]:
    """Return the rows of a release, or why there are none; once, for all hosts that ask for it."""
    if url is None:
        return (), Problem("index_not_asked", name)
    today = datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat()
    try:
        rows = published_rows(Index(url), tables, name, constraint, today)
    except NoAnswer as error:
        return (), Problem("index_silent", name, {"cause": str(error)})
    except NoRelease:
        return (), Problem("index_lacks", name, {"value": constraint})
    return tuple(rows), None if rows else Problem("index_untold", name, {"value": constraint})
