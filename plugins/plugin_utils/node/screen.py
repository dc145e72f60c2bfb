# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Print past the callback that formats results, which quotes, escapes or cuts sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ansible import constants as C  # noqa: N812 (its usual name)

from ..problems.sentence import Sentence, error_lines


def is_for_programs() -> bool:
    """Return True if the callback prints JSON."""
    return "json" in C.DEFAULT_STDOUT_CALLBACK


def show(display: Any, lines: Sequence[str], color: str | None = None) -> None:
    """Print lines as text, but none between the JSON of a callback for programs."""
    if lines and not is_for_programs():
        display.display("\n".join(lines), color=color)


def show_errors(display: Any, sentences: Iterable[Sentence]) -> None:
    """Print problems; the failed result, which follows, has them in one line. One call, so that those of two hosts do not mix."""
    lines = error_lines(sentences)
    show(display, [*lines, ""] if lines else [], C.COLOR_ERROR)
