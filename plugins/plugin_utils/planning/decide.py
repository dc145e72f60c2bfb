# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide the stack of one kind of host: what the lock says, else what the resolver finds."""

from __future__ import annotations

from collections.abc import Mapping

from ..problems.problem import Problem
from ..stack.answer import Answer
from ..stack.inputs import find_os
from ..stack.interpreters import default_interpreter
from ..stack.resolve import choose, refuse
from ..stack.tables import Tables, load
from .lock import LockError, changed_inputs, differences, entry_for, locked_stack, nearest_entry, read


def decide(question: Mapping, lock: str | None = None, renew: bool = False, tables: Tables | None = None) -> Answer:
    """Return stack (or None), conflicts, suggestion (or None) and warnings for a question (see stack.resolve).

    lock is the path of a lock file: what it has for this host is what comes back, whatever the tables say by now;
    raise LockError when it has nothing. With renew, the lock only tells what the new stack changes.
    """
    tables = tables or load()
    entries = read(lock)
    stack, inputs = choose(question, tables)
    old = entry_for(entries, inputs)
    if old is not None and not renew:
        stack = completed(locked_stack(old, stack), tables)
    elif stack is None:
        return refuse(question, tables)
    elif entries is not None and not renew:
        raise LockError(Problem("lock_outdated", str(lock), {"changes": changed_inputs(entries, inputs)}))
    elif entries:
        stack["update"] = differences(old or nearest_entry(entries, inputs), stack)
    return answered(stack)


def completed(stack: dict, tables: Tables) -> dict:
    """Return a stack with what a lock of an older collection lacks: where its interpreters come from."""
    os = find_os(tables, stack["os"])
    return {
        **stack,
        "environments": [
            one if "interpreter" in one else {**one, "interpreter": default_interpreter(os, one["python"])}
            for one in stack["environments"]
        ],
    }


def answered(stack: dict) -> Answer:
    """Return the answer that is this stack."""
    return {"stack": stack, "conflicts": [], "suggestion": None, "warnings": stack["warnings"]}
