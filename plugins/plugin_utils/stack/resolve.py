# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The resolver's one entrance: a question in, a stack or conflicts out."""

from __future__ import annotations

from collections.abc import Mapping

from .explain import conflicts
from .inputs import make_problem
from .judge import session_for
from .lock import ADVICE, LockError, changed_inputs, differences, entry_for, locked_stack, nearest_entry, read
from .result import build_stack, inputs_of
from .search import solve
from .suggest import suggestion
from .tables import Tables, load


def resolve(question: Mapping, tables: Tables | None = None, lock: str | None = None, renew: bool = False) -> dict:
    """Resolve a question (see inputs.make_problem); raises InputError for input nobody can work with.

    lock is the path of a lock file: what it has for this host is what comes back, whatever the tables say by now;
    LockError is raised when it has nothing. With renew it only tells what the new stack changes.
    Returns stack (or None), conflicts, suggestion (or None) and warnings.
    """
    tables = tables or load()
    problem = make_problem(tables, question)
    entries, inputs = read(lock), inputs_of(problem)
    old = entry_for(entries, inputs)
    session = session_for(tables)
    chosen = solve(session, problem)
    stack = build_stack(tables, problem, chosen) if chosen else None
    if old is not None and not renew:
        stack = locked_stack(old, stack)
    elif stack is None:
        found = conflicts(session, problem)
        return {"stack": None, "conflicts": found, "suggestion": suggestion(session, problem, found), "warnings": []}
    elif entries is not None and not renew:
        raise LockError(f"{lock} no longer fits this host: {changed_inputs(entries, inputs)}; {ADVICE}")
    elif entries:
        stack["update"] = differences(old or nearest_entry(entries, inputs), stack)
    return {"stack": stack, "conflicts": [], "suggestion": None, "warnings": stack["warnings"]}
