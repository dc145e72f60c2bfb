# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks import health


def node(*seen_by, nvml="ok", problems=(), manager_needed=False):
    return {
        "gpus": [{"seen_by": list(seen)} for seen in seen_by],
        "driver": {"nvml": nvml},
        "problems": list(problems),
        "fabric": {"manager_needed": manager_needed, "state": None},
    }


BOTH, BUS = ("pci", "nvml"), ("pci",)


@pytest.mark.parametrize(
    ("planned", "measured", "status"),
    [
        ([{"model": "A40", "count": 2}], node(BOTH, BOTH), "passed"),
        ([{"model": "A40", "count": 2}], node(BOTH, BUS), "failed"),
        ([{"model": "A40", "count": 1}], node(BUS, nvml="library not found"), "failed"),
        ([{"model": "A40", "count": 2}], node(), "failed"),
        ([], node(), "passed"),
        ([], node(BOTH), "failed"),
    ],
)
def test_gpus_are_counted_by_those_that_answer(planned, measured, status):
    assert health.count({"gpus": planned}, measured)["status"] == status


@pytest.mark.parametrize(
    ("found", "status"),
    [
        ({"enabled": True, "active": True}, "passed"),
        ({"enabled": True, "active": False}, "failed"),
        ({"enabled": None, "active": None}, "unknown"),
        (None, "unknown"),
    ],
)
def test_a_service_is_enabled_and_active(found, status):
    assert health.service("x", "health", found)["status"] == status


def test_problems_become_one_failed_check():
    found = health.problems(node(BOTH, problems=["GPU0 has a PCIe link of 8 lanes where it can have 16"]))
    assert (found["status"], found["measured"]) == ("failed", "1 found")


def test_hosts_without_gpu_are_skipped_with_a_reason():
    checks = list(health.checks({"driver": {"branch": "535"}, "gpus": []}, {"services": {}}, node()))
    assert [(c["name"], c["status"]) for c in checks] == [
        ("gpu_count", "passed"), ("gpu_problems", "skipped"), ("persistence_daemon", "skipped"), ("fabric_manager", "skipped"),
    ]  # fmt: skip
    assert all(c["reason"] for c in checks if c["status"] == "skipped")


@pytest.mark.parametrize(("needed", "status"), [(None, "unknown"), (True, "failed"), (False, "skipped")])
def test_the_fabric_manager_runs_where_it_is_needed(needed, status):
    state = {"services": {"nvidia-fabricmanager": {"enabled": False, "active": False}}}
    assert health.fabric(state, node(BOTH, manager_needed=needed))["status"] == status
