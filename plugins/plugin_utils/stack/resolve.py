# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The resolver's one entrance: a question in, a stack or conflicts out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .answer import Answer
from .blame import blamed
from .explain import conflicts
from .inputs import read_question
from .judge import session_for
from .model import Part
from .result import build_stack, inputs_of
from .search import preferred
from .suggest import nearest, suggestion, unavoidable
from .tables import Tables, load


def resolve(given: Mapping[str, Any], tables: Tables | None = None) -> Answer:
    """Resolve a question (see inputs.read_question); raise InputError for input that is not valid.

    Return stack (or None), conflicts and suggestion (None when there is a stack) and warnings.
    """
    tables = tables or load()
    stack = choose(given, tables)[0]
    if stack is not None:
        return {"stack": stack, "conflicts": [], "suggestion": None, "warnings": stack["warnings"]}
    return refuse(given, tables)


def choose(given: Mapping[str, Any], tables: Tables) -> tuple[Part | None, Part]:
    """Return the stack, or None where there is none, and the inputs it depends on; cheaper than explaining a refusal."""
    question = read_question(tables, given)
    chosen = preferred(session_for(tables), question)
    return build_stack(tables, question, chosen) if chosen else None, inputs_of(question)


def refuse(given: Mapping[str, Any], tables: Tables) -> Answer:
    """Return the answer of resolve to a question without a stack: the minimal conflicts and what would resolve them."""
    question, session = read_question(tables, given), session_for(tables)
    found, doubts = blamed(session, question), unavoidable(session, question)
    joint = nearest(session, question, found, doubts)
    told = conflicts(session, question, found, joint, doubts)
    return {"stack": None, "conflicts": told, "suggestion": suggestion(question, joint), "warnings": []}
