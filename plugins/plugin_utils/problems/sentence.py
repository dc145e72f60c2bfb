# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentence about a problem, in three levels: what is wrong, why, and what to do."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import NamedTuple

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


def error_lines(sentences: Iterable[Sentence]) -> list[str]:
    """Return each problem once, a level below the other, for a terminal of 80 columns.

    >>> error_lines([Sentence("No task has the tag ncll", "did you mean nccl?")])
    ['error: No task has the tag ncll.', '  fix: Did you mean nccl?', '']
    """
    return [line for one in dict.fromkeys(sentences) for line in [*_levels(one), ""]]


def _levels(sentence: Sentence) -> Iterator[str]:
    # Variables and commands stay as they are to be copied.
    first = sentence.fix.partition(" ")[0]
    fix = sentence.fix[:1].upper() + sentence.fix[1:] if first.isalpha() else sentence.fix
    for name, text in (("error", sentence.what), ("  why", sentence.why), ("  fix", fix)):
        if text:
            yield from textwrap.wrap(
                _ended(text), WIDTH, initial_indent=f"{name}: ", subsequent_indent=" " * 7, break_on_hyphens=False
            )


def _ended(text: str) -> str:
    return text if text.endswith((".", "?")) else f"{text}."
