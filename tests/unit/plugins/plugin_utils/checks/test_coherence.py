# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks import coherence

GPU = {
    "gpus": [{"seen_by": ["pci", "nvml"]}],
    "driver": {"loaded_version": "535.309.01", "library_version": "535.309.01"},
}
BARE = {"gpus": [], "driver": {"loaded_version": None, "library_version": None}}
DRIVER = {"branch": "535", "dkms_module": "nvidia-current"}


def smi(state, exit_code, count=0):
    """What module node_probe says of nvidia-smi; its lines decide nothing."""
    return {"state": state, "count": count, "exit_code": exit_code, "lines": ["a line"]}


@pytest.mark.parametrize(
    ("installed", "planned", "matches"),
    [
        ("535.309.01-0+deb12u1", "535.*", True),
        ("535.309.01-0+deb12u1", "535.309.01-0+deb12u1", True),
        ("535.309.01-0+deb12u1", "535.261.03-1", False),
        ("5350.1", "535.*", False),
        ("3:535.309.01-1.el9", "535.309.01-1.el9", True),
        ("1.2", None, True),
    ],
)
def test_versions_match_the_plan(installed, planned, matches):
    assert coherence.version_matches(installed, planned) is matches


@pytest.mark.parametrize(
    ("installed", "status", "reason"),
    [
        ({"nvidia-smi": "535.1", "libcuda1": "535.1"}, "passed", ""),
        ({"nvidia-smi": "550.1", "libcuda1": "535.1"}, "failed", "nvidia-smi is 550.1 instead of 535.*"),
        ({"libcuda1": "535.1"}, "failed", "nvidia-smi is not installed"),
        (None, "unknown", "installed packages could not be read"),
    ],
)
def test_packages_are_compared_with_the_plan(installed, status, reason):
    planned = [{"name": "nvidia-smi", "version": "535.*"}, {"name": "libcuda1", "version": None}]
    found = coherence.packages("driver", planned, installed)
    assert (found["name"], found["status"], found["reason"]) == ("driver_packages", status, reason)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (
            {"running": "6.1.0-40", "installed": ["6.1.0-40", "6.1.0-41"], "newest": "6.1.0-41", "headers": []},
            ["6.1.0-40"],
        ),
        (
            {"running": "6.1.0-40", "installed": ["6.1.0-40"], "newest": "6.1.0-40", "headers": ["6.1.0-39"]},
            ["6.1.0-40"],
        ),
        ({"running": "outer", "installed": [], "newest": None, "headers": ["6.1.0-40"]}, ["6.1.0-40"]),
    ],
)
def test_kernels_that_matter(kernel, expected):
    assert coherence.kernels_that_matter(kernel) == expected


def _dkms(version="535.309.01", status="installed", module="nvidia-current"):
    return [{"module": module, "version": version, "kernel": "6.1.0-40", "arch": "x86_64", "status": status}]


@pytest.mark.parametrize(
    ("dkms", "headers", "status"),
    [
        (_dkms(), ["6.1.0-40"], "passed"),
        (_dkms(status="built"), ["6.1.0-40"], "failed"),
        (_dkms(version="550.163"), ["6.1.0-40"], "failed"),
        (_dkms(module="zfs"), ["6.1.0-40"], "failed"),
        (_dkms(), ["6.1.0-40", "6.1.0-41"], "failed"),
        ([], [], "unknown"),
        (None, ["6.1.0-40"], "unknown"),
    ],
)
def test_the_dkms_module_is_there_for_every_kernel_that_matters(dkms, headers, status):
    state = {"dkms": dkms, "kernel": {"running": "outer", "installed": [], "headers": headers, "newest": None}}
    assert coherence.dkms(DRIVER, state)["status"] == status


@pytest.mark.parametrize(
    ("node", "answer", "status"),
    [
        (GPU, smi("listed", 0, count=1), "passed"),
        (GPU, smi("listed", 0, count=0), "failed"),
        (GPU, smi("listed", 0, count=2), "failed"),
        (GPU, smi("no_driver", 9), "failed"),
        (GPU, smi("no_device", 6), "failed"),
        (BARE, smi("no_driver", 9), "passed"),
        (BARE, smi("no_device", 6), "passed"),
        (BARE, smi("listed", 0, count=1), "failed"),
        (BARE, smi("not_started", None), "failed"),
        (BARE, smi("version_mismatch", 18), "failed"),
        (BARE, smi("failed", 12), "failed"),
        (BARE, None, "unknown"),
    ],
)
def test_nvidia_smi_answers_as_the_hardware_demands(node, answer, status):
    assert coherence.nvidia_smi(node, answer)["status"] == status


@pytest.mark.parametrize(("interrupted", "status"), [(False, "passed"), (True, "failed"), (None, "unknown")])
def test_an_interrupted_package_manager_fails(interrupted, status):
    assert coherence.package_manager({"package_manager_interrupted": interrupted})["status"] == status


def test_a_pending_reboot_fails_with_its_reason():
    found = coherence.reboot({"reboot_pending": {"reason": "new driver", "since": None}})
    assert (found["status"], found["measured"]) == ("failed", "pending: new driver")


def test_without_a_planned_driver_nothing_is_asked_of_it():
    names = [found["name"] for found in coherence.checks({"driver": None}, {"packages": {}}, BARE, {})]
    assert names == ["package_manager", "reboot"]


def test_what_nvidia_smi_printed_is_the_reason_where_it_does_not_agree():
    check = coherence.nvidia_smi(GPU, {**smi("version_mismatch", 18), "lines": ["Failed to initialize NVML:", "x"]})
    assert (check["measured"], check["reason"]) == ("exit code 18", "Failed to initialize NVML: x")
