# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NCCL's variables in its file and elsewhere, against what was decided."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Comparison, Remedy, Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.nccl import Foreign, NcclNode
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.nccl.compare import compare_nccl
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.nccl.decide import Line
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.nccl.request import Request

LINES = (Line("NCCL_IB_HCA", "mlx5_0", "measured"), Line("NCCL_IB_TC", "106", "declared"))
RIGHT = {"NCCL_IB_HCA": "mlx5_0", "NCCL_IB_TC": "106"}
ELSEWHERE = Foreign("/etc/environment", 3, "NCCL_DEBUG")
NOWHERE = Comparison(
    "nccl", "NCCL's variables", "set nowhere else", "set nowhere else", Status.AS_PLANNED, Remedy.NONE, "foreign"
)


def line(name, desired, observed, status, remedy=Remedy.APPLY):
    return Comparison("nccl", name, desired, observed, status, remedy, "conf")


HCA, TC = (line(name, value, value, Status.AS_PLANNED, Remedy.NONE) for name, value in RIGHT.items())
SET = Comparison(
    "nccl", "NCCL_DEBUG", "not set", "line 3 of /etc/environment", Status.UNWANTED, Remedy.FOREIGN, "foreign"
)


@pytest.mark.parametrize(
    ("variables", "foreign", "elsewhere", "expected"),
    [
        (RIGHT, (), (), [HCA, TC, NOWHERE]),
        ({**RIGHT, "NCCL_IB_TC": "0"}, (), (), [HCA, line("NCCL_IB_TC", "106", "0", Status.DIFFERS), NOWHERE]),
        ({"NCCL_IB_HCA": "mlx5_0"}, (), (), [HCA, line("NCCL_IB_TC", "106", "", Status.MISSING), NOWHERE]),
        (
            {**RIGHT, "NCCL_NET": "IB", "NCCL_ALGO": "Ring"}, (), (),
            [HCA, TC, *(line(name, "not set", "a line of /etc/nccl.conf", Status.UNWANTED) for name in ("NCCL_ALGO", "NCCL_NET")), NOWHERE],
        ),
        (RIGHT, (ELSEWHERE,), (), [HCA, TC, SET]),
        (RIGHT, (ELSEWHERE,), ("NCCL_DEBUG",), [HCA, TC, NOWHERE]),
    ],
)  # fmt: skip
def test_each_variable(variables, foreign, elsewhere, expected):
    node = NcclNode(recorded=True, variables=variables, foreign=foreign)
    assert compare_nccl(LINES, Request(present=True, elsewhere=elsewhere), node) == expected
