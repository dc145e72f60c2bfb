# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts the values of a problem into its sentence: what is wrong, the value, what to set instead."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .phrases import clean
from .problem import Problem
from .scope import Scope
from .sentence import Sentence
from .sentences import SENTENCES

# Names of hosts in one sentence; a thousand would hide what it says.
SHOWN = 8
# Characters of a value.
LONGEST = 80

TYPES = {
    "bool": "true or false",
    "dict": "a dictionary",
    "float": "a number",
    "int": "a whole number",
    "list": "a list",
    "path": "a path",
    "str": "text",
}


def told(problem: Problem, sentences: Mapping[str, Sentence] | None = None) -> Sentence:
    """Return the three levels of one problem. sentences: by code, for problems of settings subjects theirs."""
    values = {name: _words(name, value) for name, value in problem.detail.items()}
    values |= {"subject": problem.subject, "takes": _takes(problem.detail)}
    # What a node said goes to a terminal.
    return Sentence(*(clean(part.format(**values)) for part in (sentences or SENTENCES)[problem.code]))


def describe(problem: Problem, sentences: Mapping[str, Sentence] | None = None) -> str:
    """Return the same in one line, for results and reports."""
    return told(problem, sentences).line


def describe_all(problems: Iterable[Problem], sentences: Mapping[str, Sentence] | None = None) -> str:
    """Return a line for several problems, each once."""
    return " ".join(dict.fromkeys(describe(problem, sentences) for problem in problems))


def _takes(detail: Mapping[str, Any]) -> str:
    """Return the verb for the nodes that a sentence is about."""
    names = detail.get("absent") or detail.get("nodes")
    return "take" if isinstance(names, (list, tuple)) and len(names) > 1 else "takes"


def _words(name: str, value: Any) -> str:
    if isinstance(value, Scope):
        return _place(value)
    if name == "type":
        return TYPES.get(str(value), str(value))
    if name == "value":
        text = f"'{value}'" if isinstance(value, str) else json.dumps(value, default=str)
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    if name == "nodes" and isinstance(value, (list, tuple)):
        return _some(value)
    return ", ".join(str(one) for one in value) if isinstance(value, (list, tuple)) else str(value)


def _place(scope: Scope) -> str:
    if scope.kind == "hosts":
        return f"set for host{'s' if len(scope.names) > 1 else ''} {_some(scope.names)}"
    words = {"command_line": "set on the command line", "play": "set in the play", "here": "set for this host"}
    return words.get(scope.kind) or f"set for group {scope.names[0]}"


def _some(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")
