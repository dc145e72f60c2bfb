# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The README's table of distributions claims what the tables prove."""

from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import Tables, load

from tools.docs import overview, proof
from tools.supported import scenarios

CHECKOUT = Path(__file__).resolve().parents[4]
TABLES = load()
TEXT = overview.supported(TABLES, CHECKOUT)


def with_row(system, **columns) -> Tables:
    """The tables with other columns in the row of a distribution."""
    rows = [{**row, **columns} if f"{row['id']} {row['version']}" == system else row for row in TABLES.rows("distros")]
    return replace(TABLES, subjects={**TABLES.subjects, "distros": {**TABLES.subjects["distros"], "rows": rows}})


def line_of(title, text=TEXT):
    return next((line for line in text.splitlines() if line.startswith(f"| [{title}]")), None)


def test_a_distribution_without_a_scenario_is_not_listed():
    text = overview.supported(with_row("almalinux 9", scenario=None, proof="none"), CHECKOUT)
    assert line_of("AlmaLinux 9", text) is None
    assert "AlmaLinux 9" in " ".join(text.split()).partition("Planned for, but not tested")[2]


def test_a_scenario_that_does_not_exist_cannot_be_listed():
    with pytest.raises(KeyError, match="no-such-scenario"):
        overview.supported(with_row("almalinux 9", scenario="no-such-scenario"), CHECKOUT)


@pytest.mark.parametrize(
    ("system", "said"), [("Debian 12", "| full run |"), ("Rocky Linux 9", "| full run, on a replica |")]
)
def test_the_table_says_where_the_job_ran(system, said):
    assert said in line_of(system)


def test_no_role_refuses_a_listed_system():
    assert " refuses " not in TEXT


def test_a_distribution_that_a_role_refuses_is_named():
    said = " ".join(proof.remarks(with_row("oraclelinux 9", family="suse"), CHECKOUT).split())
    assert "Role `python_env` refuses Oracle Linux 9: `site` ends there" in said


def test_every_replica_is_called_one():
    for row in TABLES.rows("distros"):
        if row["scenario"]:
            line = line_of(f"{TABLES.subjects['distros']['names'][row['id']]} {row['version']}")
            assert ("on a replica" in line) == scenarios(CHECKOUT)[row["scenario"]].replica
