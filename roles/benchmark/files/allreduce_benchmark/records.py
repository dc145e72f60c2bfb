# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One measurement as it stands in the document: either figures with their repetitions, or a code and a reason why there are none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Dict  # noqa: UP035 - Python 3.8

Record = Dict[str, Any]  # noqa: UP006


@dataclass(frozen=True)
class Subject:
    """A measurement to make. device: cuda or cpu; rank: None where all ranks measure together; case: what tells it from its like."""

    name: str
    unit: str
    device: str
    rank: int | None = None
    case: dict[str, Any] = field(default_factory=dict)
    higher_is_better: bool = True

    def measured(self, repetitions: Sequence[float], **detail: Any) -> Record:
        """Return the record of figures that were measured, one for each repetition."""
        return {**self._named(), "status": "measured", **summary(repetitions), "detail": detail}

    def not_measured(self, code: str, reason: str) -> Record:
        """Return the record of a figure that is missing. code: no_gpu, one_gpu, one_rank, not_supported, out_of_memory, failed."""
        return {**self._named(), "status": "not_measured", "code": code, "reason": reason}

    def _named(self) -> Record:
        return {
            "name": self.name,
            "case": self.case,
            "rank": self.rank,
            "device": self.device,
            "unit": self.unit,
            "higher_is_better": self.higher_is_better,
        }


def summary(repetitions: Sequence[float]) -> Record:
    """Return median, least, most, median absolute deviation, and the figures themselves, with six significant digits."""
    middle = median(repetitions)
    return {
        "median": rounded(middle),
        "least": rounded(min(repetitions)),
        "most": rounded(max(repetitions)),
        "deviation": rounded(median(abs(one - middle) for one in repetitions)),
        "repetitions": [rounded(one) for one in repetitions],
    }


def rounded(value: float) -> float:
    """Return a number with six significant digits, which is more than a measurement has."""
    return float(f"{value:.6g}")


def first_line(error: BaseException) -> str:
    """Return the message of an error, without the advice that follows it."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"[:300]
