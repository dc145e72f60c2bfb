# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.planned import compare
from ansible_collections.allreduce.gpu.tests.report import cluster


@pytest.fixture
def stack():
    return cluster.node("gpu-1", "10.0.0.1")["gpu_stack"]


@pytest.fixture
def state():
    return cluster.node("gpu-1", "10.0.0.1")["gpu_node_state"]


def result(stack, state, name):
    return next((item.result, item.planned, item.installed) for item in compare(stack, state) if item.name == name)


def test_a_node_as_planned_has_no_difference(stack, state):
    items = compare(stack, state)

    assert {item.result for item in items} == {"as planned"}
    assert [item.name for item in items] == [
        "version",
        "DKMS module nvidia-current",
        "archive components",
        "nvidia-kernel-dkms",
        "nvidia-driver",
        "nvidia-persistenced",
        "python",
        "torch",
        "numpy",
    ]


def test_differences_stand_first(stack, state):
    state["packages"]["nvidia-persistenced"] = None
    state["environments"]["main"]["packages"]["torch"] = "2.5.1"

    assert [(item.name, item.result) for item in compare(stack, state)][:2] == [
        ("nvidia-persistenced", "missing"),
        ("torch", "differs"),
    ]


def test_what_was_not_measured_is_no_difference(stack):
    assert {item.result for item in compare(stack, {})} == {"not measured"}


@pytest.mark.parametrize(
    ("wanted", "found", "expected"),
    [
        ("torch==2.6.0", "2.6.0+cu124", "as planned"),
        ("torch==2.6.0", "2.6.1", "differs"),
        ("torch>=2.5,<3", "2.6.0", "as planned"),
        ("torch==2.6.0", "not a version", "differs"),
        ("Torch==2.6.0", None, "missing"),
    ],
)
def test_requirements(stack, state, wanted, found, expected):
    stack["environments"][0]["requirements"] = [wanted]
    state["environments"]["main"]["packages"]["torch"] = found

    assert compare(stack, state)[0].result == expected


def test_a_requirement_nobody_can_read_is_not_measured(stack, state):
    stack["environments"][0]["requirements"] = ["--find-links somewhere"]

    assert result(stack, state, "--find-links somewhere")[0] == "not measured"


@pytest.mark.parametrize(
    ("python", "expected"), [("3.11.2", "as planned"), ("3.1.1", "differs"), ("3.110.0", "differs")]
)
def test_python_agrees_by_whole_numbers(stack, state, python, expected):
    state["environments"]["main"]["python"] = python

    assert result(stack, state, "python")[0] == expected


def test_an_absent_environment_is_missing(stack, state):
    state["environments"] = {}

    assert result(stack, state, "python")[0] == result(stack, state, "torch")[0] == "missing"


def test_a_module_built_for_another_version_differs(stack, state):
    state["dkms"][0]["version"] = "530.41.03"

    found = result(stack, state, "DKMS module nvidia-current")
    assert found == ("differs", "535.*", "530.41.03 for 6.1.0-40-amd64")


@pytest.mark.parametrize(
    ("source", "installed", "expected"),
    [
        ("distribution", "535.309.01", "as planned"),
        ("distribution", "550.1", "differs"),
        ("nvidia", "535.309.01", "differs"),
        ("nvidia", "535.261.03", "as planned"),
    ],
)
def test_a_distribution_decides_the_release_within_a_branch(stack, state, source, installed, expected):
    stack["driver"]["source"] = source
    state["driver"]["installed"] = installed

    assert result(stack, state, "version")[0] == expected


def test_a_module_only_added_is_missing(stack, state):
    state["dkms"][0]["status"] = "added"

    assert result(stack, state, "DKMS module nvidia-current")[0] == "missing"


def test_an_archive_component_left_out_differs(stack, state):
    state["apt_components"] = ["main", "non-free"]

    assert result(stack, state, "archive components") == (
        "differs",
        "contrib, non-free, non-free-firmware",
        "non-free",
    )


def test_no_driver_planned_means_nothing_to_compare(stack, state):
    stack["driver"] = None

    assert {item.component for item in compare(stack, state)} == {"environment main"}


def test_a_branch_without_a_version_agrees_with_any_release_of_it(stack, state):
    stack["driver"]["version"] = None

    assert result(stack, state, "version") == ("as planned", "535.*", "535.261.03")


def test_packages_of_other_parts_are_compared_too(stack, state):
    stack["nccl"] = {"version": "2.18", "packages": [{"name": "libnccl2", "version": "2.18.3-1"}]}
    stack["cudnn"] = {"version": "8.9"}

    assert result(stack, state, "libnccl2")[0] == "missing"
    assert [item.result for item in compare(stack, state) if item.component == "cudnn"] == ["not measured"]
