# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m tools.table_version`: update the date of the compatibility tables where their content has changed."""

from __future__ import annotations

import datetime
import hashlib
import json
import sys
from pathlib import Path

import yaml

TABLES = Path(__file__).resolve().parents[1] / "data" / "stack"
HEAD = """\
---
# Version of all tables together: the day of the last change to any of them. Locks carry it.
# content: SHA-256 of all tables. After a change, `python -m tools.table_version` sets both.
"""


def digest(tables: Path = TABLES) -> str:
    """Return the SHA-256 of what the tables say; comments and layout do not count."""
    files = sorted(path for path in tables.glob("*.yml") if path.name != "version.yml")
    content = {path.stem: _read(path) for path in files}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def recorded(tables: Path = TABLES) -> dict[str, str]:
    """Return table_version and content of version.yml."""
    return _read(tables / "version.yml")


def _read(path: Path):
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 (a safe loader in both cases)


def stamp(tables: Path, today: datetime.date) -> bool:
    """Write version.yml for changed tables; return whether there was a change."""
    content = digest(tables)
    if recorded(tables).get("content") == content:
        return False
    text = f'{HEAD}table_version: "{today:%Y.%m.%d}"\ncontent: {content}\n'
    (tables / "version.yml").write_text(text, encoding="utf-8")
    return True


def main() -> int:
    """Stamp the tables of this checkout and tell the result."""
    changed = stamp(TABLES, datetime.datetime.now(tz=datetime.timezone.utc).date())
    print(f"{'tables changed: version' if changed else 'tables unchanged since version'} {recorded()['table_version']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
