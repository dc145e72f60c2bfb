# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the roles that hold packages must not have in common."""

import re
from pathlib import Path

import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.components import BY_HOLD
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.names import DRIVER_EXCLUDED, FABRIC_MANAGER_HELD

ROLES = Path(__file__).resolve().parents[3] / "roles"


def holds():
    """{name of a hold: roles that use it}"""
    found = {}
    for path in ROLES.glob("*/tasks/*.yml"):
        for name in re.findall(r"(?m)^\s+allreduce\.gpu\.packages:\n\s+name: (\S+)$", path.read_text(encoding="utf-8")):
            found.setdefault(name, set()).add(path.parents[1].name)
    return found


def test_every_hold_belongs_to_one_role():
    assert set(BY_HOLD) <= set(holds())
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


def test_what_the_driver_leaves_to_the_fabric_manager_is_held_there():
    """The two patterns beside them are the fabric manager's alone."""
    assert set(FABRIC_MANAGER_HELD) - set(DRIVER_EXCLUDED) == {"nvlsm", "nvlink5*"}
    assert set(DRIVER_EXCLUDED) <= set(FABRIC_MANAGER_HELD)


def test_only_one_variable_says_how_long_to_wait_for_a_lock():
    named = {
        name
        for path in ROLES.glob("*/defaults/main.yml")
        for name in yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        if "lock_timeout" in name
    }
    assert named == {"gpu_package_lock_timeout"}
    literal = [
        path
        for path in ROLES.glob("*/tasks/**/*.yml")
        if re.search(r"lock_timeout: *\d", path.read_text(encoding="utf-8"))
    ]
    assert not literal, literal
