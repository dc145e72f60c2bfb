# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role container_toolkit in check mode, by what a node has of it."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.names import CONTAINER_TOOLKIT_PACKAGES
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.components.container_toolkit import (
    GENERATED,
    REFRESHED,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve

from tests.support.local_play import run_roles

LOADED, OTHER = "580.178.04", "575.57.08"
ON, OFF = ({"enabled": value, "active": value} for value in (True, False))
UNITS = ("nvidia-cdi-refresh.path", "nvidia-cdi-refresh.service")
HELD = {
    "packages": list(CONTAINER_TOOLKIT_PACKAGES), "excluded": [], "services": [], "module_stream": None, "kernel": False, "kept": True,
}  # fmt: skip


def play(place, version, cdi, units=ON, loaded=LOADED, installed=True, **variables):
    """Return the run of the role on a node that has these CDI specifications, with the planned packages unless it lacks them."""
    question = {"os": "ubuntu 22.04", "gpus": ["A40"], "ansible_core": "2.16"}
    stack = resolve({**question, "request": {"driver": LOADED, "container_toolkit": version, "pytorch": "none"}})[
        "stack"
    ]
    packages = {one["name"]: one["version"] for one in stack["container_toolkit"]["packages"]}
    state = {
        "package_manager": "apt",
        "packages": packages if installed else {"bash": "5.2"},
        "package_holds": {"container-toolkit": HELD} if installed else {},
        "driver": {"loaded": loaded, "installed": LOADED},
        "services": dict.fromkeys(UNITS, units),
        "cdi": cdi,
        "apt_mirrors": [],
    }
    options = [word for name, value in variables.items() for word in ("-e", f"{name}={value}")]
    run = run_roles(
        place, ["container_toolkit"], {"gpu_stack": stack, "gpu_node_state": state}, "--check", "--diff", *options
    )
    assert run.status == 0, run.output
    return run


def modules(run):
    return [str(row["module"]).rpartition(".")[2] for row in run.executions if row["role"]]


@pytest.mark.parametrize(
    ("version", "cdi", "loaded", "executed"),
    [
        ("1.19.1", {REFRESHED: LOADED}, LOADED, []),
        ("1.19.1", {GENERATED: LOADED, REFRESHED: LOADED}, LOADED, ["config_files"]),
        ("1.17.4", {GENERATED: LOADED}, LOADED, []),
        ("1.17.4", {GENERATED: OTHER}, LOADED, ["command"]),
        ("1.17.4", {GENERATED: None}, LOADED, ["command"]),
        ("1.17.4", {}, LOADED, ["command"]),
        ("1.17.4", {}, None, []),
        ("1.17.4", {GENERATED: OTHER}, OTHER, []),
        ("1.17.4", {GENERATED: LOADED, REFRESHED: OTHER}, LOADED, ["config_files"]),
    ],
)
def test_what_runs_on_the_node(tmp_path, version, cdi, loaded, executed):
    assert modules(play(tmp_path, version, cdi, loaded=loaded)) == executed


def test_the_toolkits_service_is_enabled_and_started(tmp_path):
    output = play(tmp_path, "1.19.1", {REFRESHED: LOADED}, units=OFF).output
    assert [name in output for name in (f"after: service {UNITS[0]}", f"after: service {UNITS[1]}")] == [True, True]
    assert output.count("+active: yes") == 1


def test_packages_come_in_one_version(tmp_path):
    output = play(tmp_path, "1.17.4", {}, installed=False).output
    assert output.count(" 1.17.4-1\n") == 4


def test_its_removal(tmp_path):
    run = play(tmp_path, "1.17.4", {GENERATED: LOADED, REFRESHED: LOADED}, container_toolkit_state="absent")
    assert "config_files" in modules(run)
    assert "-nvidia-container-toolkit 1.17.4-1" in run.output
