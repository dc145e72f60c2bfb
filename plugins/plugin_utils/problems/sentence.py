# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentence about a problem, in three levels: what is wrong, why, and what to do."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

# Columns of a terminal.
WIDTH = 80


class Sentence(NamedTuple):
    """The levels of one problem, without full stops; ``fix`` is an imperative, or a question after a misspelt name."""

    what: str
    fix: str = ""
    why: str = ""

    @property
    def line(self) -> str:
        """Return all levels in one line, for results and reports.

        >>> Sentence("The file cannot be read", "correct its permissions", "Permission denied").line
        'The file cannot be read (Permission denied); correct its permissions.'
        """
        why = f" ({self.why})" if self.why else ""
        return _ended(self.what + why + (f"; {self.fix}" if self.fix else ""))

    def filled(self, subject: str, detail: Mapping[str, Any]) -> Sentence:
        """Return the levels with what a problem is about, and its values, in them."""
        return Sentence(*(level.format(subject=subject, **detail) for level in self))


def error_lines(sentences: Iterable[Sentence]) -> list[str]:
    """Return each problem once, a level below the other, for a terminal of 80 columns.

    >>> error_lines([Sentence("No task has the tag ncll", "did you mean nccl?")])
    ['error: No task has the tag ncll.', '  fix: Did you mean nccl?', '']
    """
    found = dict.fromkeys(sentences)
    return [line for one in found for line in [*_level("error", one.what), *lower_lines(one.why, one.fix), ""]]


def lower_lines(why: str, fix: str, indent: str = "  ") -> list[str]:
    """Return the lines below what is wrong, for a terminal of 80 columns; none for an empty level.

    >>> lower_lines("it is down", "start it"), lower_lines("", "verify_network_port=5202", indent="    ")
    (['  why: it is down.', '  fix: Start it.'], ['    fix: verify_network_port=5202.'])
    """
    # Variables and commands stay as they are to be copied.
    capital = fix[:1].upper() if fix.partition(" ")[0].isalpha() else fix[:1]
    return [*_level(f"{indent}why", why), *_level(f"{indent}fix", capital + fix[1:])]


def _level(name: str, text: str) -> list[str]:
    return wrapped(f"{name}: {_ended(text)}", " " * (len(name) + 2)) if text else []


def wrapped(text: str, indent: str) -> list[str]:
    """Return a text as lines of a terminal; indent: of all but the first."""
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def _ended(text: str) -> str:
    return text if text.endswith((".", "?")) else f"{text}."
