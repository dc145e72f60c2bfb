# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation says what the tables say."""

from __future__ import annotations

import os
from pathlib import Path

from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.supported import BEGIN, END, insert, supported
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import load

DOCUMENT = Path(__file__).resolve().parents[5] / "docs" / "stack.md"


def test_the_documentation_is_up_to_date():
    """UPDATE_DOCS=1 writes it."""
    have = DOCUMENT.read_text(encoding="utf-8")
    wanted = insert(have, load())
    if os.environ.get("UPDATE_DOCS"):
        DOCUMENT.write_text(wanted, encoding="utf-8")
        have = wanted
    assert have == wanted, "run UPDATE_DOCS=1 python -m pytest tests/unit/plugins/plugin_utils/stack/test_supported.py"


def test_only_the_generated_part_is_touched():
    text = insert(f"before\n{BEGIN}\nold\n{END}\nafter\n", load())
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "\nold\n" not in text


def test_every_row_is_shown():
    text = supported(load())
    for subject, column in (("gpus", "model"), ("torch", "version"), ("drivers", "branch")):
        assert all(f"| {row[column]} |" in text for row in load().rows(subject))
