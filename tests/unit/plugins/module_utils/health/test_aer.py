# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors that a GPU's PCIe link, at either end, has reported to the kernel."""

import pytest
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines
from ansible_collections.allreduce.gpu.tests.lab.nvml.link_faults import aer


def told(found):
    return [(one["check"], one["gpu"], one["expected"], one["measured"], one["severity"]) for one in found["findings"]]


@pytest.mark.parametrize(
    ("number", "end", "kind", "count", "limits", "expected"),
    [
        (2, 0, "fatal", 1, {}, [("aer_errors", "GPU2", "at most 0 fatal", 1, "degraded")]),
        (2, 1, "fatal", 3, {}, [("aer_errors", "GPU2", "at most 0 fatal", 3, "degraded")]),
        (2, 1, "fatal", 3, {"max_aer_fatal": 3}, []),
        (2, 2, "fatal", 3, {}, []),  # a bridge above the link, which is others' too
        (2, 0, "nonfatal", 7, {}, []),
        (2, 0, "nonfatal", 7, {"max_aer_nonfatal": 6}, [("aer_errors", "GPU2", "at most 6 nonfatal", 7, "degraded")]),
        (2, 0, "nonfatal", 7, {"max_aer_nonfatal": 7}, []),
        (2, 0, "correctable", 999999, {}, []),
    ],
)
def test_errors_of_either_end_count(examine, number, end, kind, count, limits, expected):
    assert told(examine(aer(machines.hgx_h100(), number, end, kind, count), **limits)) == expected


def test_a_kernel_that_counts_none_is_not_judged(examine):
    assert "aer_errors" not in [entry["check"] for entry in examine(machines.a40_pcie())["judged"]]


def test_both_ends_are_added(examine):
    machine = aer(aer(machines.a40_pcie(), 1, 0, "fatal", 2), 1, 1, "fatal", 3)
    assert told(examine(machine)) == [("aer_errors", "GPU1", "at most 0 fatal", 5, "degraded")]
