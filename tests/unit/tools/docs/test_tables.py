# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/stack.md lists everything that can be planned."""

from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import load

from tools.docs import tables
from tools.supported import scenarios

TABLES = load()
TEXT = tables.supported(TABLES, scenarios(Path(__file__).resolve().parents[4]))


@pytest.mark.parametrize(("subject", "column"), [("gpus", "model"), ("torch", "version"), ("drivers", "branch")])
def test_every_row_is_shown(subject, column):
    assert all(f"| {row[column]} |" in TEXT for row in TABLES.rows(subject))


@pytest.mark.parametrize(
    "row", TABLES.rows("distros"), ids=[f"{row['id']}-{row['version']}" for row in TABLES.rows("distros")]
)
def test_every_distribution_is_shown_with_what_is_tested(row):
    (line,) = [line for line in TEXT.splitlines() if line.startswith(f"| {row['id']} {row['version']} ")]
    tested = line.split(" | ")[-1].removesuffix(" |")
    assert (tested == "no") == (row["scenario"] is None)
    assert tested.startswith("full run") == (row["proof"] != "none")
    assert tested.endswith("on a replica") == (row["scenario"] is not None and row["id"] != "debian")
