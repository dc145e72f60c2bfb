# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A role's metadata names the platforms on which a scenario runs it."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import load

from tools.docs.platforms import metadata

CHECKOUT = Path(__file__).resolve().parents[4]
TABLES = load()


def written(tables=TABLES):
    return {path.parts[-3]: yaml.safe_load(text) for path, text in metadata(tables, CHECKOUT).items()}


WRITTEN = written()


def test_platforms_are_those_of_the_scenarios():
    """A few rows with scenarios as here, whatever is tested by another month; RHEL and what is built like it is one platform."""
    tested = {"ubuntu 22.04", "ubuntu 24.04", "debian 12", "rocky 8", "rocky 10", "almalinux 8"}
    few = {**dict.fromkeys(tested, "a scenario"), "oraclelinux 9": None, "ubuntu 26.04": None}
    distros = TABLES.subjects["distros"]
    rows = [
        {**row, "scenario": few[name]} for row in distros["rows"] if (name := f"{row['id']} {row['version']}") in few
    ]
    tables = replace(TABLES, subjects={**TABLES.subjects, "distros": {**distros, "rows": rows}})
    assert len(rows) == len(few)
    for found in written(tables).values():
        assert found["galaxy_info"]["platforms"] == [
            {"name": "Ubuntu", "versions": ["jammy", "noble"]},
            {"name": "Debian", "versions": ["bookworm"]},
            {"name": "EL", "versions": ["8", "10"]},
        ]


def test_nothing_else_of_the_metadata_changes():
    for role, after in WRITTEN.items():
        have = yaml.safe_load((CHECKOUT / "roles" / role / "meta" / "main.yml").read_text(encoding="utf-8"))
        have["galaxy_info"]["platforms"] = after["galaxy_info"]["platforms"]
        assert have == after


def test_metadata_without_platforms_is_an_error(tmp_path):
    path = tmp_path / "roles" / "new" / "meta" / "main.yml"
    path.parent.mkdir(parents=True)
    path.write_text("---\ngalaxy_info:\n  description: New\n", encoding="utf-8")
    with pytest.raises(ValueError, match="has no platforms"):
        metadata(load(), tmp_path)
