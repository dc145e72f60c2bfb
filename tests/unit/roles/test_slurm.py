# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role slurm in check mode on this machine, which is node and controller: what it asks of them, what it would write, what it refuses."""

import copy
import json
import os

import pytest

from tests.support.local_play import run_roles
from tests.support.slurm import measured

BOTH = ("gpu_nodes", "controllers")
INCLUDES = "Include allreduce_nodes.conf\n"


def play(
    place, groups=BOTH, recorded=False, configured=True, records=(), services=None, driven=True, conf=INCLUDES, **variables,
):  # fmt: skip
    """Run the role on a machine with the GPUs of a simulated one; its slurm.conf is in the directory etc of PLACE."""
    (place / "etc").mkdir(exist_ok=True)
    if configured:
        (place / "etc" / "slurm.conf").write_text(conf, "utf-8")
    facts = {
        "gpu_stack": {"os": {"id": "debian", "version": "12", "family": "debian", "arch": "x86_64"}},
        "gpu_node": copy.deepcopy(measured("rtx-3090")["gpu_node"]),
        "gpu_node_state": {
            "services": services or {}, "package_manager": "apt", "packages": {},
            "records": ["slurm"] if recorded else list(records),
        },
        "distribution": "Debian", "distribution_version": "12", "os_family": "Debian",
        "default_ipv4": {"address": "10.0.0.1"},
    }  # fmt: skip
    if not driven:
        facts["gpu_node"]["gpus"][1]["minor_number"] = None
    given = {"slurm_directory": str(place / "etc"), "slurm_version": "24.11", "slurm_node_name": "gpu-7", **variables}
    return run_roles(place, ["slurm"], facts, "--check", "--diff", "-e", json.dumps(given), groups=groups)


def modules(run):
    return [row["module"].rpartition(".")[2] for row in run.executions if row["role"]]


@pytest.mark.parametrize("groups", [BOTH, ("gpu_nodes",), ("controllers",), ()])
def test_off_costs_nothing(tmp_path, groups):
    run = play(tmp_path, groups)
    assert run.status == 0, run.output
    assert modules(run) == []


def test_what_was_written_and_is_off_is_restored(tmp_path):
    run = play(tmp_path, recorded=True, conf="")
    assert run.status == 0, run.output
    assert modules(run) == ["slurm_facts", "tuning"]


def test_what_the_cluster_includes_is_not_removed(tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "gres.conf").write_text("\nInclude allreduce_gres.conf\n", "utf-8")
    run = play(tmp_path, recorded=True)
    assert run.status != 0
    assert modules(run) == ["slurm_facts"]
    lines = f"Include allreduce_gres.conf in {tmp_path}/etc/gres.conf:2, Include allreduce_nodes.conf in {tmp_path}/etc/slurm.conf:1"
    assert f"without the files of the role that are to go: {lines}; put node lines" in run.output


def test_programs_that_slurm_starts_are_not_removed(tmp_path):
    (tmp_path / "etc").mkdir()
    run = play(tmp_path, ["gpu_nodes"], records=["slurm_programs"], conf="Prolog=/opt/allreduce/lib/slurm/prolog\n")
    assert run.status != 0
    assert modules(run) == ["slurm_facts"]
    assert f"are to go: Prolog in {tmp_path}/etc/slurm.conf:1; remove these lines" in run.output


@pytest.mark.parametrize(("driven", "asked"), [(True, ["slurm_facts"]), (False, ["gpu_facts", "slurm_facts"])])
def test_a_node_is_measured_and_nothing_else(tmp_path, driven, asked):
    """The GPUs once more if they had no driver when the run began: the same run has installed it."""
    run = play(tmp_path, ["gpu_nodes"], driven=driven, slurm_state="external")
    assert run.status == 0, run.output
    assert modules(run) == asked


def test_a_node_whose_health_is_watched_gets_the_programs(tmp_path):
    run = play(tmp_path, ["gpu_nodes"], slurm_state="external", health_state="present")
    assert run.status == 0, run.output
    assert modules(run)[:2] == ["slurm_facts", "config_files"]
    assert "+++ after: /opt/allreduce/lib/slurm/prolog" in run.output
    assert "/opt/allreduce/lib/slurm check gpu-7 " in run.output


@pytest.mark.parametrize("state", ["external", "absent"])
def test_the_programs_go_with_the_health(tmp_path, state):
    run = play(tmp_path, ["gpu_nodes"], records=["slurm_programs"], slurm_state=state)
    assert run.status == 0, run.output
    assert [one for one in modules(run) if one != "node_state"] == ["slurm_facts", "file", "config_files"]


def test_a_controller_shows_what_it_would_write(tmp_path):
    run = play(tmp_path, slurm_state="external")
    assert run.status == 0, run.output
    assert modules(run) == ["slurm_facts", "slurm_facts", "tuning", "node_state"]
    device = "AutoDetect=off Name=gpu Type=nvidia_geforce_rtx_3090 File=/dev/nvidia1"
    assert f"+NodeName=gpu-7 {device}" in run.output
    assert f"+++ after: {tmp_path}/etc/allreduce_nodes.conf" in run.output
    assert f"add the line 'Include allreduce_gres.conf' to {tmp_path}/etc/gres.conf." in run.output
    assert "Include allreduce_nodes.conf' to" not in run.output
    assert sorted(os.listdir(tmp_path / "etc")) == ["slurm.conf"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"configured": False}, "/etc/slurm.conf; set slurm_directory to where that file is"),
        ({"slurm_version": "19.05"}, "Slurm 19.05 does not have MultipleFiles, and AutoDetect for single nodes"),
        ({"slurm_features": ["a b"]}, "slurm_features has 'a b'; a feature is one word"),
        ({"groups": ["controllers"]}, "No host of group gpu_nodes has slurm_state: external"),
    ],
)
def test_what_is_refused_stops_before_anything_changes(tmp_path, options, sentence):
    run = play(tmp_path, slurm_state="external", **options)
    assert run.status != 0
    assert set(modules(run)) <= {"slurm_facts"}
    assert sentence in run.output and "The files of node for Slurm stay as they are." in run.output


OURS = {
    "slurm_directory": "/etc/slurm",
    "slurm_version": "",
    "slurm_node_name": "",
    "slurm_cgroups": False,
    "slurm_state": "present",
}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"groups": BOTH}, "node is in groups controllers and gpu_nodes"),
        ({"groups": ["gpu_nodes"]}, "the inventory has no hosts in the group controllers"),
        ({"groups": ["controllers"]}, "No host of group gpu_nodes has slurm_state: present"),
        ({"groups": ["controllers"], "slurm_extra_lines": ["SlurmUser=root"]}, "slurm_extra_lines has SlurmUser"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused_before_anything_changes(tmp_path, options, sentence):
    run = play(tmp_path, **{**OURS, **options})
    assert run.status != 0
    assert set(modules(run)) <= {"slurm_facts"}
    assert "Slurm is not set up on node: " in run.output and sentence in run.output


def test_what_was_installed_and_is_off_goes(tmp_path):
    """On this machine, which has no record: no package is the role's, and the database stays."""
    services = {"slurmd": {"enabled": True, "active": True, "outdated": False}}
    run = play(
        tmp_path, ("gpu_nodes",), records=["slurm_installed"], services=services, **{**OURS, "slurm_state": "absent"}
    )
    assert run.status == 0, run.output
    assert modules(run) == ["slurm_facts", "config_files", "config_files"]
    assert "+++ after: service slurmd" in run.output and "service mariadb" not in run.output
