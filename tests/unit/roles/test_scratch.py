# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role scratch on this machine in check mode: what it asks of a node."""

import json

import pytest

from tests.support.local_play import run_roles

PRESENT = {"scratch_state": "present"}


def play(place, recorded=False, **variables):
    facts = {
        "gpu_stack": {},
        "gpu_node": {"gpus": [], "nics": []},
        "gpu_node_state": {
            "services": {}, "packages": {}, "package_manager": "apt", "leftover_packages": {}, "environments": {},
            "records": ["scratch"] if recorded else [],
        },
    }  # fmt: skip
    return run_roles(place, ["scratch"], facts, "--check", "--diff", "-e", json.dumps(variables))


def modules(run):
    return [row["module"].rpartition(".")[2] for row in run.executions if row["role"]]


@pytest.mark.parametrize(
    ("recorded", "variables", "expected"),
    [
        (False, {}, []),
        (True, {}, ["scratch"]),
        (False, {"scratch_destroy_data": True}, ["scratch"]),
        (False, {"scratch_destroy_data": "no"}, []),
        (False, PRESENT, ["scratch_facts", "scratch"]),
    ],
)
def test_what_runs_on_the_node(tmp_path, recorded, variables, expected):
    """This machine has no blank local NVMe disk: it is left alone, and says so."""
    run = play(tmp_path, recorded, **variables)
    assert run.status == 0, run.output
    assert modules(run) == expected
    assert ("leaves disks alone" in run.output) is (variables == PRESENT)


def test_refused_before_the_node_is_asked(tmp_path):
    run = play(tmp_path, **PRESENT, scratch_mount_point="/etc")
    assert run.status != 0 and modules(run) == [] and "scratch_mount_point is /etc" in run.output


def test_a_named_disk_that_is_none(tmp_path):
    run = play(tmp_path, **PRESENT, scratch_disks=["/dev/null"])
    assert run.status != 0 and modules(run) == ["scratch_facts", "scratch"]
    assert "/dev/null is not a whole disk of this node" in run.output
