# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CuPy's rows: the releases of one series whose wheels are for the same Pythons, by package."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..stack.libraries import Requirement

SOURCE = "P1"


def packages(rows: Iterable[Mapping]) -> list[str]:
    """Return the packages that the rows name; there is one for each major of CUDA."""
    return sorted({package for row in rows for package in row["wheels"]})


def new_row(series: int, pythons: list[str], alike: Sequence[Mapping[str, Any]], numpy: str | None) -> dict[str, Any]:
    """Return a row like the others of its series; of a new one, what the metadata says."""
    if alike:
        columns = {name: value for name, value in alike[-1].items() if name not in ("series", "python", "wheels")}
        return {"series": series, "python": pythons, "wheels": {}, **columns}
    return {
        "series": series, "python": pythons, "wheels": {}, "min_cc": None, "max_cc": None, "numpy": numpy, "sources": [SOURCE],
    }  # fmt: skip


def numpy_floor(requires: Iterable[str]) -> str | None:
    """Return the oldest NumPy that requirements allow, as >=2.0."""
    for one in map(Requirement, requires):
        if one.name == "numpy":
            return next((f">={part.version}" for part in one.specifier if part.operator == ">="), None)
    return None
