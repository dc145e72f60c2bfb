# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes in what a user wrote, named with the nearest known values."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from ..problems.problem import Problem, ProblemError


class InputError(ProblemError):
    """Input that is not valid."""

    def __init__(self, code: str, subject: object = "", **detail: object):
        super().__init__(Problem(code, str(subject), detail))


def nearest(value: object, known: Iterable[object], count: int = 3) -> str:
    """Return the known values that look most like this one."""
    texts = [str(one) for one in known]
    close = difflib.get_close_matches(str(value), texts, n=count, cutoff=0.3) or texts[-count:]
    return ", ".join(close)
