# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A role's metadata names the platforms on which a scenario runs it."""

from pathlib import Path

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import load

from tools.docs.platforms import metadata

CHECKOUT = Path(__file__).resolve().parents[4]
WRITTEN = {path.parts[-3]: yaml.safe_load(text) for path, text in metadata(load(), CHECKOUT).items()}
PLATFORMS = [
    {"name": "Ubuntu", "versions": ["focal", "jammy", "noble"]},
    {"name": "Debian", "versions": ["bookworm", "trixie"]},
    {"name": "EL", "versions": ["8", "9", "10"]},
]


@pytest.mark.parametrize("role", WRITTEN)
def test_platforms_are_those_of_the_scenarios(role):
    assert WRITTEN[role]["galaxy_info"]["platforms"] == PLATFORMS


def test_nothing_else_of_the_metadata_changes():
    for role, written in WRITTEN.items():
        have = yaml.safe_load((CHECKOUT / "roles" / role / "meta" / "main.yml").read_text(encoding="utf-8"))
        have["galaxy_info"]["platforms"] = written["galaxy_info"]["platforms"]
        assert have == written


def test_metadata_without_platforms_is_an_error(tmp_path):
    path = tmp_path / "roles" / "new" / "meta" / "main.yml"
    path.parent.mkdir(parents=True)
    path.write_text("---\ngalaxy_info:\n  description: New\n", encoding="utf-8")
    with pytest.raises(ValueError, match="has no platforms"):
        metadata(load(), tmp_path)
