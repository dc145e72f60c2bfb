# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/migrating.md and docs/clouds.md name what exists: roles, playbooks and variables."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


def rows(page):
    """The rows of the tables of a page."""
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))]
        for line in (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and not line.startswith(("| ---", "| what you typed"))
    ]


ROWS, CLOUDS = rows("migrating.md"), rows("clouds.md")


def options():
    """The options of all roles, and the keys of a request."""
    for path in ROOT.glob("roles/*/meta/argument_specs.yml"):
        for entry in yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"].values():
            yield from (entry.get("options") or {}).items()


OPTIONS = dict(options())
OPTIONS |= OPTIONS["gpu_stack_request"]["options"]
NAMED = re.compile(r"(role |playbook |)`([a-z_]+)(?:: (\w+))?")


def known(kind, name, value):
    """Whether there is such a role, playbook or variable, and the variable takes the value."""
    if kind:
        folder, ending = {"role ": ("roles", ""), "playbook ": ("playbooks", ".yml")}[kind]
        return (ROOT / folder / f"{name}{ending}").exists()
    choices = OPTIONS.get(name, {}).get("choices")
    return name in OPTIONS and (not value or choices is None or value in choices)


def test_the_tables_are_read():
    assert len(ROWS) > 20 and len(CLOUDS) > 20
    assert all(len(row) == 3 for row in ROWS + CLOUDS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_what_does_it_here_exists(row):
    names = list(NAMED.findall(row[1].replace("`allreduce-run`", "role `cluster_ssh`")))
    assert names
    assert [one for one in names if not known(*one)] == []


# Of what is named there and has a role's name at its beginning, the rest belongs to roles.
NO_VARIABLES = {"nccl_settings", "nccl_environment"}
PREFIXES = tuple(f"{path.name}_" for path in ROOT.glob("roles/*/")) + ("gpu_stack_", "driver_")


@pytest.mark.parametrize("row", CLOUDS, ids=lambda row: row[0][:40])
def test_what_is_set_on_clouds_exists(row):
    names = [one for one in NAMED.findall(row[2]) if one[1].startswith(PREFIXES) and one[1] not in NO_VARIABLES]
    assert [one for one in names if not known(*one)] == []


@pytest.mark.parametrize("cell", ["role `nvidia`", "playbook `sites`", "`tuning_stat`", "`tuning_state: on`"])
def test_what_does_not_exist(cell):
    assert not known(*NAMED.search(cell).groups(""))
