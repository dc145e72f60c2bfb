# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks import drift
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Comparison, Remedy, Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import Stack
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.record import node_comparisons
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.requests import request_digest

KERNEL = "6.1.0-40"
STACK = {
    "os": {"id": "debian", "version": "12", "arch": "x86_64", "family": "debian"},
    "gpus": [{"model": "A40", "count": 1}],
    "driver": {
        "branch": "535", "version": "535.309.01", "source": "distribution", "dkms_module": "nvidia-current",
        "components": ["non-free"], "held": ["nvidia-*"],
        "packages": [{"name": "nvidia-smi", "version": "535.*"}, {"name": "libcuda1", "version": None}],
    },
    "environments": [{"name": "main", "python": "3.11", "requirements": ["torch==2.13.0", "numpy"]}],
}  # fmt: skip
PLANNED = parse(Stack, STACK)
DIGEST = request_digest(PLANNED.environments[0], PLANNED.os)
PACKAGES = {"torch": "2.13.0+cpu", "numpy": "2.4.6"}
RUNNING = {"enabled": True, "active": True}
STATE = {
    "kernel": {"running": KERNEL, "installed": [KERNEL], "headers": [KERNEL], "newest": KERNEL},
    "packages": {"nvidia-smi": "535.309.01-1", "libcuda1": "535.309.01-1"},
    "package_manager_interrupted": False,
    "apt_mirrors": [{"uri": "http://a.example/debian", "suite": "bookworm", "components": ["main", "non-free"]}],
    "dkms": [{"module": "nvidia-current", "version": "535.309.01", "kernel": KERNEL, "status": "installed"}],
    "driver": {"loaded": "535.309.01", "installed": "535.309.01"},
    "services": {"chrony": RUNNING},
    "environments": {
        "main": {"python": "3.11.2", "packages": PACKAGES, "lock": {"request": DIGEST, "packages": PACKAGES}}
    },
    "reboot_pending": None,
}


def checks(stack=None, variables=None, **state):
    found = node_comparisons({**STACK, **(stack or {})}, {**STATE, **state}, variables or {})
    return {check["name"]: check for check in drift.checks(found)}


def test_a_node_as_planned_passes_every_check():
    found = checks()
    assert {check["status"] for check in found.values()} == {"passed"}
    assert list(found) == [
        "package_manager", "clock_service", "reboot", "driver_sources", "driver_packages", "dkms_module", "driver_loaded",
        "main_python", "main_packages", "main_files",
    ]  # fmt: skip
    assert {check["category"] for check in found.values()} == {"coherence", "network", "environment"}
    assert {check["reason"] for check in found.values()} == {""}


@pytest.mark.parametrize(
    ("state", "name", "status", "measured", "reason"),
    [
        ({"packages": {"nvidia-smi": "550.1", "libcuda1": "1"}}, "driver_packages", "failed", "1 as planned, 1 not",
         "nvidia-smi is 550.1 instead of 535.*"),
        ({"packages": {"libcuda1": "1"}}, "driver_packages", "failed", "1 as planned, 1 not",
         "nvidia-smi is missing"),
        ({"packages": {**STATE["packages"], "nvidia-driver-550": "550.1"}}, "driver_packages", "failed",
         "2 as planned, 1 not", "nvidia-driver-550 (550.1) is in the way of the plan"),
        ({"packages": None}, "driver_packages", "unknown", "not known",
         "nvidia-smi could not be measured; libcuda1 could not be measured"),
        ({"dkms": []}, "dkms_module", "failed", "missing",
         "6.1.0-40: nvidia-current 535.* is missing"),
        ({"dkms": None}, "dkms_module", "unknown", "not known", None),
        ({"apt_mirrors": [{**STATE["apt_mirrors"][0], "components": ["main"]}]}, "driver_sources", "failed", None, None),
        ({"driver": {"loaded": None, "installed": "535.309.01"}}, "driver_loaded", "failed", "missing", None),
        ({"driver": {"loaded": "470.1", "installed": "535.309.01"}}, "driver_loaded", "failed", "470.1", None),
        ({"package_manager_interrupted": True}, "package_manager", "failed", "interrupted", None),
        ({"package_manager_interrupted": None}, "package_manager", "unknown", "not known", None),
        ({"reboot_pending": {"reason": "new driver", "by_role": True}}, "reboot", "failed", "new driver", None),
        ({"reboot_pending": {"reason": "libc6", "by_role": False}}, "reboot", "passed", "libc6", ""),
        ({"services": {"chrony": {"enabled": False, "active": False}, "chronyd": RUNNING}}, "clock_service", "passed", None, ""),
        ({"services": {"chrony": {"enabled": True, "active": False}}}, "clock_service", "failed", "enabled and not active", None),
        ({"services": {}}, "clock_service", "unknown", "not known", None),
        ({"package_manager": "dnf", "kernel": {**STATE["kernel"], "partial": [KERNEL]}}, "next_kernel", "failed",
         "6.1.0-40 without its modules", "kernel is 6.1.0-40 without its modules instead of 6.1.0-40 with its modules"),
        ({"environments": {}}, "main_python", "failed", "missing", None),
        ({"environments": {"main": {"python": "3.1.1"}}}, "main_python", "failed", "3.1.1",
         "Python is 3.1.1 instead of 3.11"),
        ({"environments": {"main": {"python": "3.11.2", "packages": {"torch": "2.12.0", "numpy": "1"}}}}, "main_packages",
         "failed", "1 as planned, 1 not", "torch is 2.12.0 instead of 2.13.0"),
        ({"environments": {"main": {**STATE["environments"]["main"], "changed_files": {"torch": "lib/torch/nn.py"}}}}, "main_files",
         "failed", "changed: lib/torch/nn.py", "torch is changed: lib/torch/nn.py instead of as installed"),
    ],
)  # fmt: skip
def test_a_difference_is_one_check_that_did_not_pass(state, name, status, measured, reason):
    found = checks(**state)
    assert found[name]["status"] == status
    assert measured is None or found[name]["measured"] == measured
    assert reason is None or found[name]["reason"] == reason
    assert bool(found[name]["fix"]) == (status != "passed")


def test_every_kernel_that_matters_is_named():
    kernels = {
        "running": KERNEL,
        "installed": [KERNEL, "6.1.0-41"],
        "headers": [KERNEL, "6.1.0-41"],
        "newest": "6.1.0-41",
    }
    check = checks(kernel=kernels)["dkms_module"]
    assert (check["status"], check["measured"]) == (
        "failed", "nvidia-current 535.309.01 for 6.1.0-40, none for 6.1.0-41",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("lock", "reason"),
    [
        ({"request": DIGEST, "packages": {**PACKAGES, "numpy": "2.4.5"}}, "numpy is 2.4.6 instead of 2.4.5"),
        ({"request": "0" * 16, "packages": PACKAGES},
         "lock is solved for another instead of solved for this request"),
        (None, "lock is missing"),
    ],
)  # fmt: skip
def test_an_environment_that_is_not_that_of_its_lock(lock, reason):
    found = checks(environments={"main": {**STATE["environments"]["main"], "lock": lock}})
    assert (found["main_lock"]["status"], found["main_lock"]["reason"]) == ("failed", reason)


@pytest.mark.parametrize(
    ("packages", "reason"),
    [
        ({"numpy": "2.4.6"}, None),
        ({"torch": "2.12.0", "numpy": "2.4.6"}, None),
        ({"torch": "2.12.0", "numpy": "2.4.5"}, "numpy is 2.4.5 instead of 2.4.6"),
    ],
)
def test_a_package_that_the_request_already_names_is_not_named_for_the_lock_again(packages, reason):
    found = checks(environments={"main": {**STATE["environments"]["main"], "packages": packages}})
    assert found["main_packages"]["status"] == "failed"
    assert found.get("main_lock", {}).get("reason") == reason


def test_a_driver_that_shall_be_absent_is_in_the_way():
    check = checks(variables={"nvidia_driver_state": "absent"})["driver_packages"]
    assert (check["status"], check["expected"]) == ("failed", "not installed")


def test_what_to_do_stands_apart_from_the_difference():
    found = checks(packages={"libcuda1": "1"})["driver_packages"]
    assert (found["reason"], found["fix"]) == ("nvidia-smi is missing", "run site again")


def test_every_remedy_has_its_advice():
    assert set(drift.ADVICE) == set(Remedy) and not [
        one for one, words in drift.ADVICE.items() if one is not Remedy.NONE and not words
    ]


def test_nobody_is_told_to_run_again_what_never_ran():
    differing = [Comparison("x", one.value, "a", "b", Status.DIFFERS, one, "state") for one in Remedy]
    fixes = [check["fix"] for one in differing for check in drift.checks([one], has_run=False)]
    assert len(fixes) == len(Remedy) and not [fix for fix in fixes if "again" in fix.replace("start it again", "")]


@pytest.mark.parametrize(
    ("variables", "service", "reason"),
    [
        ({}, {"enabled": True, "active": True}, None),
        (
            {},
            {"enabled": False, "active": True},
            "nvidia-persistenced is not enabled and active instead of enabled and active",
        ),
        (
            {},
            {"enabled": True, "active": False},
            "nvidia-persistenced is enabled and not active instead of enabled and active",
        ),
        ({}, {"enabled": None, "active": None}, None),
        (
            {"nvidia_driver_persistence": False},
            {"enabled": True, "active": True},
            "nvidia-persistenced (enabled and active) is in the way",
        ),
        ({"nvidia_driver_persistence": False}, {"enabled": False, "active": True}, None),
    ],
)
def test_the_persistence_daemon_of_the_next_boot(variables, service, reason):
    found = checks(variables=variables, services={**STATE["services"], "nvidia-persistenced": service}).get(
        "driver_service"
    )
    assert (found or {"reason": ""})["reason"].startswith(reason or "") and (reason is None) == (
        found is None or found["status"] == "passed"
    )
