# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small tables that stay as they are, for tests of rules: a new row of data/stack changes no answer to a test's question.

tests/fixtures/stack has those tables whose newest row decides what is chosen; rows are copied from data/stack and keep its
columns. The other tables are the live ones: their rows are found by a key, and a new row changes none of the old.
"""

from __future__ import annotations

from pathlib import Path

from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve as resolve_with
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import Tables, load, read_yaml

DIRECTORY = Path(__file__).resolve().parents[1] / "fixtures" / "stack"
FROZEN = {path.stem: read_yaml(path) for path in sorted(DIRECTORY.glob("*.yml"))}
TABLES = Tables("frozen", {**load().subjects, **FROZEN})


def resolve(question, tables=TABLES):
    """Resolve a question with the frozen tables."""
    return resolve_with(question, tables)
