# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import json

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine import problems
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.problems import problem

WELL = {"loaded_version": "535.1", "library_version": "535.1", "nvml": "ok", "nvml_state": "ok"}


def gpu(index, links=(), width=16, seen_by=("pci", "nvml"), name="NVIDIA A100", remote="gpu"):
    return {
        "index": index,
        "pci_bus_id": f"0000:{index or 0:02x}:00.0",
        "name": name,
        "seen_by": list(seen_by),
        "pcie": {"width": width, "max_width": 16},
        "nvlinks": [{"active": active, "remote_type": remote} for active in links],
    }


def node_of(gpus, **more):
    return {"driver": WELL, "gpus": gpus, "fabric": {"state": None}, "nvswitches": {"count": 0}, **more}


@pytest.mark.parametrize(
    ("driver", "found"),
    [
        ({}, []),
        ({"loaded_version": None, "library_version": None, "nvml_state": "library_missing"}, []),
        ({"loaded_version": None, "nvml_state": "driver_not_loaded"}, []),
        (
            {"library_version": "550.1", "nvml_state": "version_mismatch"},
            [problem("driver_mismatch", loaded="535.1", library="550.1")],
        ),
        (
            {"library_version": None, "nvml": "library x not found", "nvml_state": "library_missing"},
            [problem("nvml_unavailable", loaded="535.1", state="library_missing", reason="library x not found")],
        ),
    ],
)
def test_driver(driver, found):
    assert problems.driver_problems({**WELL, **driver}) == found


@pytest.mark.parametrize(
    ("state", "seen_by", "codes"),
    [
        ("ok", ["pci", "nvml"], []),
        ("ok", ["pci"], ["gpu_not_in_nvml"]),
        ("ok", ["nvml"], ["gpu_not_on_bus"]),
        ("library_missing", ["pci"], []),
    ],
)
def test_visibility(state, seen_by, codes):
    node = {"driver": {**WELL, "nvml_state": state}, "gpus": [gpu(0, seen_by=seen_by)]}
    assert [one["code"] for one in problems.visibility_problems(node, [])] == codes


def test_a_gpu_that_cannot_be_opened_goes_by_its_index():
    node = {"driver": WELL, "gpus": []}
    assert problems.visibility_problems(node, [{"index": 2, "problem": "GPU is lost", "code": "gpu_lost"}]) == [
        problem("gpu_not_opened", "GPU2", reason="GPU is lost", error="gpu_lost")
    ]


@pytest.mark.parametrize(("width", "found"), [(16, 0), (8, 1), (None, 0)])
def test_narrow_links(width, found):
    assert problems.link_problems([gpu(1, width=width)]) == [
        problem("pcie_link_narrow", "GPU1", width=8, max_width=16)
    ] * found  # fmt: skip


@pytest.mark.parametrize(
    ("gpus", "found"),
    [
        ([gpu(0, [True] * 12), gpu(1, [True] * 12)], []),
        (
            [gpu(0, [True] * 12), gpu(1, [True] * 10 + [False] * 2)],
            [problem("nvlinks_inactive", "GPU1", active=10, expected=12)],
        ),
        # A bridge joins two of three cards.
        ([gpu(0, [True] * 4), gpu(1, [True] * 4), gpu(2)], []),
        # Behind switches every GPU has links.
        (
            [gpu(0, [True] * 18, remote="nvswitch"), gpu(1, [False] * 18, remote=None)],
            [problem("nvlinks_inactive", "GPU1", active=0, expected=18)],
        ),
        # Models are not compared with each other.
        ([gpu(0, [True] * 4, name="NVIDIA A40"), gpu(1, [True] * 12)], []),
    ],
)
def test_nvlinks(gpus, found):
    assert problems.nvlink_problems(node_of(gpus)) == found


@pytest.mark.parametrize(("state", "found"), [("completed", 0), (None, 0), ("not_started", 1), ("in_progress", 1)])
def test_fabric(state, found):
    assert (
        problems.fabric_problems(node_of([], fabric={"state": state}))
        == [problem("fabric_not_ready", state=state)] * found
    )


def test_problems_are_plain_values_in_one_order():
    node = node_of([gpu(0, width=8, seen_by=["pci"])], fabric={"state": "not_started"})
    found = problems.find_problems(node, [{"index": 1, "problem": "GPU is lost", "code": "gpu_lost"}], ["0000:16:02.0"])
    assert [one["code"] for one in found] == [
        "gpu_not_opened", "gpu_not_in_nvml", "pcie_link_narrow", "fabric_not_ready", "acs_redirect",
    ]  # fmt: skip
    assert json.loads(json.dumps(found)) == found


def test_with_code():
    found = [problem("a"), problem("b"), problem("a", "GPU1")]
    assert problems.with_code(found, "a") == [found[0], found[2]]
