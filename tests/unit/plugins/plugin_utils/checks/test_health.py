# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health.findings import finding
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks import health
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.node import node_checks
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.record import node_comparisons

ENTRY = {"check": "ecc_errors", "category": "health", "expected": "at most 0", "measured": "at most 0 on 8 GPUs"}


def ecc(gpu, measured, severity="failed", cause="more errors than tolerated", action="drain and reset the GPU"):
    return finding("ecc_errors", "at most 0 uncorrected", measured, severity, cause, action, gpu)


def one(*findings):
    (check,) = health.checks({}, {}, {"judged": [ENTRY], "findings": list(findings)})
    return check


def test_what_is_well_is_a_check_that_passed():
    assert (one()["status"], one()["measured"]) == ("passed", "at most 0 on 8 GPUs")


def test_findings_of_several_gpus_are_one_failed_check():
    check = one(ecc("GPU0", 2), ecc("GPU3", 2), ecc("GPU5", 7))
    assert check["status"] == "failed"
    assert check["expected"] == "at most 0 uncorrected"
    assert check["measured"] == "2 (GPU0, GPU3); 7 (GPU5)"
    assert (check["reason"], check["fix"]) == ("failed: more errors than tolerated", "drain and reset the GPU")


def test_what_is_not_about_one_gpu_names_none():
    text = "PCIe ACS redirects peer-to-peer traffic at bridge 0000:16:02.0"
    assert one(ecc(None, text))["measured"] == text


def test_a_skipped_check_is_reported_as_skipped():
    found = health.checks({}, {}, {"judged": [], "findings": [], "skipped_checks": ["xid"]})
    assert [(one["name"], one["category"], one["status"]) for one in found] == [("xid", "health", "skipped")]


def test_what_is_only_unknown_is_unknown():
    check = one(ecc("GPU1", None, "unknown", "NVML did not tell"))
    assert (check["status"], check["measured"]) == ("unknown", "not known (GPU1)")


def test_a_known_fault_counts_more_than_an_unknown_one_and_both_are_told():
    check = one(ecc("GPU1", None, "unknown", "NVML did not tell", "read the log"), ecc("GPU2", 1))
    assert (check["status"], check["measured"]) == ("failed", "1 (GPU2)")
    assert check["reason"] == "unknown: NVML did not tell; failed: more errors than tolerated"
    assert check["fix"] == "read the log; drain and reset the GPU"


@pytest.mark.parametrize(
    ("gpu_node", "status"), [({"gpus": []}, "skipped"), ({"gpus": [{"seen_by": ["pci"]}]}, "unknown")]
)
def test_health_that_nobody_judged_is_not_passed(gpu_node, status):
    (check,) = health.checks({}, gpu_node, None)
    assert (check["name"], check["status"]) == ("gpu_health", status)
    assert check["reason"]


def test_every_fact_is_one_check():
    judged = [{**ENTRY, "check": name} for name in ("module_loaded", "driver_library", "fabric", "gpu_count")]
    packages = [{"name": "nvidia-fabricmanager", "version": "535.*"}]
    stack = {
        "driver": {"branch": "535", "dkms_module": "nvidia-current", "packages": [{"name": "x"}]},
        "fabric_manager": {"packages": packages},
        "gpus": [{"model": "A100"}],
    }
    comparisons = node_comparisons(stack, {}, {})
    found = node_checks(comparisons, stack, {}, {"gpus": [{}]}, "gpu-1", None, {"judged": judged, "findings": []})
    names = [check["name"] for check in found]
    assert len(names) == len(set(names))
    assert {entry["check"] for entry in judged} | {"fabric_manager_packages", "fabric_manager_service"} <= set(names)
