# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The resolver's one entrance: a question in, a stack or conflicts out."""

from __future__ import annotations

from collections.abc import Mapping

from .explain import conflicts
from .inputs import make_problem
from .judge import Session
from .result import build_stack
from .search import solve
from .suggest import suggestion
from .tables import Tables, load


def resolve(question: Mapping, tables: Tables | None = None) -> dict:
    """Resolve a question (see inputs.make_problem); raises InputError for input nobody can work with.

    Returns stack (or None), conflicts, suggestion (or None) and warnings.
    """
    tables = tables or load()
    problem = make_problem(tables, question)
    session = Session(tables)
    chosen = solve(session, problem)
    if chosen is None:
        found = conflicts(session, problem)
        return {"stack": None, "conflicts": found, "suggestion": suggestion(session, problem, found), "warnings": []}
    stack = build_stack(tables, problem, chosen)
    return {"stack": stack, "conflicts": [], "suggestion": None, "warnings": stack["warnings"]}
