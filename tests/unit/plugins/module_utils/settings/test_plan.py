# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a reading and a declaration to changes, refusals, resets and warnings."""

import json

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import plan as settings_plan
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.declaration import parse
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.describe import (
    describe,
    describe_forgetful,
    describe_resets,
)


def reading(**differing) -> dict:
    """An A100 as it comes up."""
    pair = {"current": True, "pending": True}
    gpu = {
        "index": 0,
        "uuid": "GPU-a",
        "name": "NVIDIA A100",
        "pci_bus_id": "0000:07:00.0",
        "persistence_mode": False,
        "compute_mode": "default",
        "ecc": pair,
        "mig_mode": {"current": False, "pending": False},
        "power_limit_watts": {"current": 400, "default": 400, "min": 100, "max": 400},
        "application_clocks": {
            "current": {"memory": 1215, "graphics": 1410},
            "default": {"memory": 1215, "graphics": 1095},
        },
        "clocks": {1215: list(range(1410, 195, -15))},
        "locked_clocks": {},
    }
    return {**gpu, **differing}


def plan(settings: dict, **differing) -> dict:
    return settings_plan.make_plan(parse([settings]), [reading(**differing)])


@pytest.mark.parametrize(
    "settings, before, after",
    [
        ({"persistence_mode": True}, False, True),
        ({"compute_mode": "exclusive_process"}, "default", "exclusive_process"),
        ({"ecc": False}, True, False),
        ({"mig_mode": True}, False, True),
        ({"power_limit_watts": 300}, 400, 300),
        ({"power_limit_watts": 100}, 400, 100),
        (
            {"application_clocks": "default"},
            {"memory": 1215, "graphics": 1410},
            {"memory": 1215, "graphics": 1095},
        ),
        ({"locked_clocks": {"graphics": 1410}}, {"graphics": None}, {"graphics": [1410, 1410]}),
        (
            {"locked_clocks": "default"},
            {"graphics": None, "memory": None},
            {"graphics": "default", "memory": "default"},
        ),
    ],
)
def test_what_differs_is_changed(settings, before, after):
    made = plan(settings)
    assert made["problems"] == []
    assert [(c["before"], c["after"]) for c in made["gpus"][0]["changes"]] == [(before, after)]


@pytest.mark.parametrize(
    "settings",
    [
        {"persistence_mode": False},
        {"compute_mode": "default"},
        {"power_limit_watts": "default"},
        {"power_limit_watts": 400.0},
        {"application_clocks": {"memory": 1215, "graphics": 1410}},
        {"locked_clocks": {"graphics": {"min": 210, "max": 1410}}},
    ],
)
def test_what_is_as_declared_stays(settings):
    made = plan(settings, locked_clocks={"graphics": [210, 1410], "memory": [1215, 1215]})
    assert made["problems"] == []
    assert made["gpus"][0]["changes"] == []


@pytest.mark.parametrize(
    "settings, differing, text",
    [
        ({"power_limit_watts": 500}, {}, "power_limit_watts 500 is out of range; give 100 to 400."),
        ({"power_limit_watts": 99}, {}, "power_limit_watts 99 is out of range; give 100 to 400."),
        ({"ecc": True}, {"ecc": {"current": None, "pending": None}}, "ecc is not supported."),
        ({"mig_mode": True}, {"mig_mode": {"current": None, "pending": None}}, "mig_mode is not supported."),
        ({"persistence_mode": True}, {"persistence_mode": None}, "persistence_mode is not supported."),
        (
            {"application_clocks": {"memory": 1593, "graphics": 1410}},
            {},
            "application_clocks.memory 1593 MHz is not supported; give one of 1215.",
        ),
        (
            {"application_clocks": {"memory": 1215, "graphics": 1400}},
            {},
            "application_clocks.graphics 1400 MHz is not supported; give 210 to 1410 in steps of 15.",
        ),
        (
            {"application_clocks": "default"},
            {"application_clocks": {"current": None, "default": None}},
            "application_clocks are not supported; use locked_clocks.",
        ),
        (
            {"locked_clocks": {"graphics": {"min": 210, "max": 1980}}},
            {},
            "locked_clocks.graphics 210 to 1980 MHz is not supported; give 210 to 1410 in steps of 15.",
        ),
    ],
)
def test_what_a_gpu_does_not_take_is_refused_with_what_it_takes(settings, differing, text):
    made = plan(settings, **differing)
    assert [describe(problem) for problem in made["problems"]] == [f"GPU 0 (NVIDIA A100): {text}"]
    assert {problem["subject"] for problem in made["problems"]} == {"GPU0"}
    assert {problem["detail"]["setting"] for problem in made["problems"]} == set(settings)
    assert json.loads(json.dumps(made["problems"])) == made["problems"]
    assert made["gpus"][0]["changes"] == []


def test_a_lost_gpu_is_a_problem_only_where_it_is_meant():
    readings = [reading(), {"index": 1, "problem": "GPU is lost"}]
    (problem,) = settings_plan.make_plan(parse([{"ecc": True}]), readings)["problems"]
    assert (problem["code"], problem["subject"]) == ("gpu_not_opened", "GPU1")
    assert describe(problem) == "GPU 1 does not answer: GPU is lost."
    assert settings_plan.make_plan(parse([{"gpus": [0], "ecc": True}]), readings)["problems"] == []


def test_no_gpu_at_all_is_a_problem():
    (problem,) = settings_plan.make_plan(parse([{"ecc": True}]), [])["problems"]
    assert (problem["code"], problem["subject"]) == ("no_gpu", None)


ON, OFF, TURNING_OFF = ({"current": c, "pending": p} for c, p in ((True, True), (False, False), (True, False)))


@pytest.mark.parametrize(
    "settings, before, after, waiting",
    [
        ({"ecc": False}, {"ecc": ON}, None, ["ecc"]),  # check mode
        ({"ecc": False}, {"ecc": TURNING_OFF}, None, ["ecc"]),
        ({"ecc": True}, {"ecc": TURNING_OFF}, None, []),  # what was pending is taken back
        ({"ecc": False}, {"ecc": ON}, {"ecc": TURNING_OFF}, ["ecc"]),
        ({"ecc": False}, {"ecc": ON}, {"ecc": ON}, []),  # it failed, which is said elsewhere
        ({"mig_mode": False}, {"mig_mode": ON}, None, []),
        ({"mig_mode": False}, {"mig_mode": ON}, {"mig_mode": OFF}, []),
        ({"mig_mode": False}, {"mig_mode": ON}, {"mig_mode": TURNING_OFF}, ["mig_mode"]),
        ({"power_limit_watts": 300}, {"ecc": TURNING_OFF}, {"ecc": TURNING_OFF}, []),
    ],
)
def test_what_waits_for_a_reset(settings, before, after, waiting):
    readings = None if after is None else {0: reading(**after)}
    said = settings_plan.resets(plan(settings, **before), readings)
    assert [one["setting"] for one in said] == waiting


def test_gpus_that_wait_for_the_same_are_named_together():
    names = ["NVIDIA A100", "NVIDIA A40", "NVIDIA A100"]
    readings = [reading(index=index, name=name) for index, name in enumerate(names)]
    made = settings_plan.make_plan(parse([{"ecc": False}]), readings)
    assert describe_resets(settings_plan.resets(made)) == [
        "GPU 0, 2 (NVIDIA A100): ecc turns off only after a reset of the GPU or a reboot.",
        "GPU 1 (NVIDIA A40): ecc turns off only after a reset of the GPU or a reboot.",
    ]


@pytest.mark.parametrize(
    "settings, persistence, warned",
    [
        ({"power_limit_watts": 300}, False, True),
        ({"power_limit_watts": 300}, True, False),
        ({"power_limit_watts": 300, "persistence_mode": True}, False, False),
        ({"power_limit_watts": 300, "persistence_mode": False}, True, True),
        ({"power_limit_watts": "default", "ecc": False}, False, False),
    ],
)
def test_settings_that_will_be_forgotten_are_warned_about(settings, persistence, warned):
    lost = settings_plan.forgetful(plan(settings, persistence_mode=persistence))
    said = ["GPU 0 (NVIDIA A100): settings that last only while a program uses the GPU: power_limit_watts; "
            "declare persistence_mode: true."]  # fmt: skip
    assert describe_forgetful(lost) == (said if warned else [])


@pytest.mark.parametrize(
    "setting, value, calls",
    [
        ("mig_mode", True, [("DeviceSetMigMode", (1,))]),
        ("persistence_mode", False, [("DeviceSetPersistenceMode", (0,))]),
        ("compute_mode", "exclusive_process", [("DeviceSetComputeMode", (3,))]),
        ("power_limit_watts", 250.5, [("DeviceSetPowerManagementLimit", (250500,))]),
        ("application_clocks", "default", [("DeviceResetApplicationsClocks", ())]),
        ("locked_clocks", {"graphics": [210, 1410]}, [("DeviceSetGpuLockedClocks", (210, 1410))]),
        (
            "locked_clocks",
            "default",
            [("DeviceResetGpuLockedClocks", ()), ("DeviceResetMemoryLockedClocks", ())],
        ),
    ],
)
def test_calls_of_nvml(setting, value, calls):
    assert settings_plan.calls({"setting": setting, "value": value, "after": value}) == calls


def test_the_difference_is_shown_for_each_gpu_that_changes():
    made = plan({"power_limit_watts": 300, "ecc": True, "locked_clocks": {"graphics": 1410}})
    assert settings_plan.diffs(made) == [
        {
            "before_header": "GPU 0 NVIDIA A100 GPU-a",
            "after_header": "GPU 0 NVIDIA A100 GPU-a",
            "before": "power_limit_watts: 400\nlocked_clocks: graphics unknown\n",
            "after": "power_limit_watts: 300\nlocked_clocks: graphics 1410-1410\n",
        }
    ]
