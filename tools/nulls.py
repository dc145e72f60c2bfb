# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m tools.nulls`: how many cells of the tables nobody could fill, per file and column.

null is "not known"; what does not apply is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

TABLES = Path(__file__).resolve().parents[1] / "data" / "stack"


def nulls(directory: Path = TABLES) -> Counter[tuple[str, str]]:
    """Return the number of nulls by table and column."""
    found: Counter[tuple[str, str]] = Counter()
    for path in sorted(directory.glob("*.yml")):
        found.update((path.stem, column) for column in _columns(yaml.safe_load(path.read_text(encoding="utf-8"))))
    return found


def _columns(value: Any, column: str = "") -> Iterator[str]:
    """Yield the column of every null; rows and their lists name none."""
    if value is None:
        yield column
    elif isinstance(value, dict):
        for name, one in value.items():
            known = name if str(name)[0].isalpha() and name not in ("rows", "builds") else ""
            yield from _columns(one, f"{column}.{known}".strip(".") if known else column)
    elif isinstance(value, list):
        for one in value:
            yield from _columns(one, column)


def main() -> None:
    """Print the counts and their sum."""
    found = nulls()
    for (table, column), number in sorted(found.items()):
        print(f"{number:5} {table}.{column}")
    print(f"{sum(found.values()):5} in all")


if __name__ == "__main__":
    main()
