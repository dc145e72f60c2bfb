# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Known causes of failures, recognized in what a package manager printed: the only place that reads its words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, TypedDict

UNKNOWN = "unknown"
# Characters of an output in which a cause is looked for, and of a word there.
LONGEST, LONGEST_WORD = 1 << 16, 1000


class Cause(NamedTuple):
    """One cause: ``what`` and ``remedy`` may name groups of ``pattern`` and what else the caller fills in."""

    code: str  # what programs decide on
    pattern: str
    what: str
    remedy: str


class Explanation(TypedDict):
    """A failure explained: ``cause`` is a code, ``remedy`` what to do (empty where unknown), ``text`` both for people."""

    cause: str
    remedy: str
    text: str


def bounded(output: str) -> str:
    """Return the beginning and the end of an output, with long words cut: what a pattern takes grows with the square of their lengths."""
    if len(output) > LONGEST:
        output = f"{output[: LONGEST // 2]}\n{output[-LONGEST // 2 :]}"
    return re.sub(rf"(\S{{{LONGEST_WORD}}})\S+", r"\1…", output)


def recognize(causes: Iterable[Cause], output: str) -> tuple[Cause, re.Match[str]] | None:
    """Return the first cause whose pattern is in the output, and its match."""
    for cause in causes:
        found = re.search(cause.pattern, output, re.MULTILINE)
        if found:
            return cause, found
    return None
