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
WHOLE = [
    {"name": "Ubuntu", "versions": ["jammy"]},
    {"name": "Debian", "versions": ["bookworm"]},
    {"name": "EL", "versions": ["8"]},
]
EVERYWHERE = [
    {"name": "Ubuntu", "versions": ["focal", "jammy", "noble"]},
    {"name": "Debian", "versions": ["bookworm", "trixie"]},
    {"name": "EL", "versions": ["8", "9"]},
]


@pytest.mark.parametrize(
    ("role", "platforms"),
    [
        ("base", EVERYWHERE),
        ("nvidia_driver", EVERYWHERE),
        ("stack", EVERYWHERE),  # the others depend on it
        ("python_env", WHOLE),
        ("cluster_ssh", WHOLE),
        ("verify", WHOLE),  # not part of site
    ],
)
def test_platforms_are_those_of_the_scenarios(role, platforms):
    assert WRITTEN[role]["galaxy_info"]["platforms"] == platforms


def test_nothing_else_of_the_metadata_changes():
    for role, written in WRITTEN.items():
        have = yaml.safe_load((CHECKOUT / "roles" / role / "meta" / "main.yml").read_text(encoding="utf-8"))
        have["galaxy_info"]["platforms"] = written["galaxy_info"]["platforms"]
        assert have == written


def test_metadata_without_platforms_is_an_error(tmp_path):
    for name in ("playbooks", "molecule/shared"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "playbooks" / "site.yml").write_text("[]\n", encoding="utf-8")
    (tmp_path / "molecule" / "shared" / "stack.yml").write_text("- {vars: {converge_without: []}}\n", encoding="utf-8")
    path = tmp_path / "roles" / "new" / "meta" / "main.yml"
    path.parent.mkdir(parents=True)
    path.write_text("---\ngalaxy_info:\n  description: New\n", encoding="utf-8")
    with pytest.raises(ValueError, match="has no platforms"):
        metadata(load(), tmp_path)
