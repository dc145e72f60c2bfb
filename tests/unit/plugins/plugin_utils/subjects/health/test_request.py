# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What role health asks for, and what is told of a node that has something else."""

import json

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health import installed
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.program import program_files
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.health.request import (
    SUBJECT,
    TIMER,
    answer,
)

from tests.support.subjects import compared

ON = {"enabled": True, "active": True}
WANTED = {"health_state": "present", "health_gpu_count": "8"}


@pytest.fixture
def node(tmp_path):
    """The state of a node that has what WANTED asks for, and where its files are."""
    for file in program_files("health.health_program", installed.DIRECTORY):
        path = tmp_path / file["path"][1:]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file["content"], "utf-8")
    declaration = tmp_path / installed.DECLARATION[1:]
    declaration.parent.mkdir(parents=True)
    declaration.write_text(json.dumps(answer(WANTED)["options"], indent=4) + "\n", "utf-8")
    return tmp_path


def told(place, services=None, wanted=None):
    state = {"health": installed.read_installed(FileTree(str(place))), "services": {TIMER: services or ON}}
    return {
        one.subject: one.status
        for one in compared(SUBJECT, WANTED if wanted is None else wanted, {"gpu_node_state": state})
    }


def test_nothing_speaks_against_the_defaults():
    assert answer({})["problems"] == []
    assert answer(WANTED)["options"]["gpu_count"] == 8 and "gpu_count" not in answer({})["options"]


def test_a_threshold_is_what_its_check_compares():
    """Text, as templates of older releases of ansible-core give it, is compared with no number."""
    given = {"max_pcie_replays": "5", "persistence": "false", "ignored_xids": ["13", 31], "temperature_margin": None}
    found = answer({"health_thresholds": given})
    wanted = {"max_pcie_replays": 5, "persistence": False, "ignored_xids": [13, 31]}
    assert found == {**answer({}), "options": {**answer({})["options"], **wanted}}


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_pcie_replays", "many"), ("ignored_xids", ["all"]), ("persistence", "maybe"), ("gpu_count", [8])],
)
def test_a_threshold_that_no_check_can_compare_is_refused(name, value):
    (problem,) = answer({"health_thresholds": {name: value}})["problems"]
    assert name in problem


def test_a_node_that_has_what_was_asked_for(node):
    assert set(told(node).values()) == {Status.AS_PLANNED}


def test_a_program_of_another_version_is_told(node):
    (node / installed.DIRECTORY[1:] / "__main__.py").write_text("pass\n")
    assert told(node) == {"program": Status.DIFFERS, "declaration": Status.AS_PLANNED, TIMER: Status.AS_PLANNED}


def test_other_options_are_told(node):
    assert told(node, wanted={**WANTED, "health_hook": "/bin/true"})["declaration"] == Status.DIFFERS


@pytest.mark.parametrize("timer", [{"enabled": False, "active": True}, {"enabled": True, "active": False}])
def test_a_timer_that_does_not_run_is_told(node, timer):
    assert told(node, timer)[TIMER] == Status.DIFFERS


def test_a_node_without_any_of_it(tmp_path):
    assert told(tmp_path, {"enabled": False, "active": False}) == {
        "program": Status.MISSING, "declaration": Status.MISSING, TIMER: Status.DIFFERS,
    }  # fmt: skip


def test_what_was_left_behind_is_told(node):
    assert told(node, wanted={}) == {"timer": Status.UNWANTED}


def test_a_node_that_is_not_to_be_watched(tmp_path):
    assert told(tmp_path, wanted={}) == {}


def test_a_node_of_which_nobody_knows_is_unknown():
    assert {one.status for one in compared(SUBJECT, WANTED, {})} == {Status.UNKNOWN}


@pytest.mark.parametrize(
    ("declaration", "former"),
    [
        (None, ""), ("{}", ""), ("no JSON", ""), ("[]", ""), ('{"textfile_directory": ""}', ""), ('{"textfile_directory": 1}', ""),
        ('{"textfile_directory": "/var/lib/prometheus/node-exporter"}', ""), ('{"textfile_directory": "/srv/metrics"}', "/srv/metrics"),
    ],
)  # fmt: skip
def test_metrics_that_are_elsewhere_are_known(declaration, former):
    assert answer({}, declaration)["former"] == former
