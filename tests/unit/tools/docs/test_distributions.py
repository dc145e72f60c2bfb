# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A distribution's page says what is installed, from where and with which pins."""

from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import load

from tools.docs import distributions
from tools.docs.proof import shown, title
from tools.supported import scenarios

TABLES = load()
PAGES = distributions.pages(TABLES, scenarios(Path(__file__).resolve().parents[4]))
ROWS = {f"{row['id']}-{row['version']}.md": row for row in shown(TABLES)}


def test_there_is_a_page_for_every_distribution_with_a_scenario():
    assert set(PAGES) == set(ROWS)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_what_from_where_and_with_which_pins(name):
    text, row = PAGES[name], ROWS[name]
    repository = TABLES.find("repositories", slug=row["repository"])
    assert text.startswith(f"# {title(TABLES, row)}\n")
    assert (repository["key_fingerprint"] or "`cuda_repository_key_fingerprint`") in text
    assert f"/repos/{row['repository']}/x86_64/" in text
    assert f"/repos/{row['repository']}/sbsa/" in text
    assert ("priority 600" in text) == (repository.get("pin_priority") == 600)
    assert ("| module stream | `" in text) == bool(row.get("modularity"))
    assert "### Branch " in text
    assert text.count("### Branch ") == len(distributions.stacks(TABLES, row))


@pytest.mark.parametrize("name", PAGES)
def test_a_branch_is_shown_with_the_warnings_of_its_driver_only(name):
    """A distribution's own end of life stands above, once; a branch's end of life stands with the branch."""
    text, ended = PAGES[name], {row["branch"] for row in TABLES.rows("drivers") if row["status"] == "eol"}
    for stack, part in zip(distributions.stacks(TABLES, ROWS[name]), text.split("### Branch ")[1:], strict=True):
        said = [line for line in part.splitlines() if line.startswith("Take care: ")]
        assert any("end of life" in line for line in said) == (int(stack["driver"]["branch"]) in ended)
        assert not [line for line in said if f"{ROWS[name]['id']} {ROWS[name]['version']} has reached" in line]
