# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the roles that hold packages must not have in common."""

import re
from pathlib import Path

import yaml

ROLES = Path(__file__).resolve().parents[3] / "roles"


def holds():
    """{name of a hold: roles that use it}"""
    found = {}
    for path in ROLES.glob("*/tasks/*.yml"):
        for name in re.findall(r"(?m)^\s+packages_name: (\S+)$", path.read_text(encoding="utf-8")):
            found.setdefault(name, set()).add(path.parents[1].name)
    return found


def test_every_hold_belongs_to_one_role():
    assert {name: roles for name, roles in holds().items() if len(roles) > 1} == {}


def test_no_role_writes_the_file_of_a_hold():
    """Holds and roles both put files named allreduce-* into apt's directories."""
    written = re.compile(r"/etc/(?:apt/preferences\.d|needrestart/conf\.d)/allreduce-([\w-]+)")
    files = {
        name
        for path in ROLES.glob("*/*/*.yml")
        for name in written.findall(path.read_text(encoding="utf-8"))
        if path.parent.name in ("vars", "tasks")
    }
    assert "cuda" in files
    assert not files & set(holds())


def variables(role):
    return yaml.safe_load((ROLES / role / "vars" / "main.yml").read_text(encoding="utf-8"))


def test_what_the_driver_leaves_to_the_fabric_manager_is_held_there():
    """The two patterns that no driver's hold covers are the fabric manager's alone."""
    left = variables("nvidia_driver")["__nvidia_driver_other_packages"]
    assert set(variables("fabric_manager")["__fabric_manager_held"]) - set(left) == {"nvlsm", "nvlink5*"}
    assert set(left) <= set(variables("fabric_manager")["__fabric_manager_held"])
