# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.problems import problem
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.health_helper import answer, node, result


@pytest.mark.parametrize(
    ("counters", "findings"),
    [
        ({"performance_state": 0, "clock_reasons": []}, [("pcie_generation", "degraded")]),
        ({"performance_state": 0, "clock_reasons": ["idle"]}, []),
        ({"performance_state": 8, "clock_reasons": []}, []),
        ({"performance_state": None, "clock_reasons": []}, []),
    ],
)
def test_the_pcie_generation_is_judged_while_the_gpu_works(counters, findings):
    assert result(counters=counters)[1] == findings


def test_inactive_nvlinks_are_counted_on_both_sides():
    links = [{"active": True, "remote_type": "nvswitch"}]
    found = answer(node({"nvlinks": links}, findings=[problem("nvlinks_inactive", "GPU0", active=1, expected=12)]))
    assert [(entry["gpu"], entry["expected"], entry["measured"]) for entry in found["findings"]] == [
        ("GPU0", "12 active", "1 active")
    ]


def test_links_that_are_all_down_are_found():
    links = [{"active": False, "remote_type": None}]
    found = answer(node({"nvlinks": links}, findings=[problem("nvlinks_inactive", "GPU0", active=0, expected=18)]))
    assert [(one["check"], one["gpu"], one["measured"]) for one in found["findings"]] == [
        ("nvlinks", "GPU0", "0 active")
    ]


def test_nvlinks_that_are_not_used_at_all_are_not_judged():
    judged = answer(node({"nvlinks": [{"active": False, "remote_type": None}]}))["judged"]
    assert "nvlinks" not in [entry["check"] for entry in judged]
