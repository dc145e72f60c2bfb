# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs on a node for its NVLink fabric, by GPUs and NVSwitches on PCI."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.boards import fabric_services
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.inputs import read_question
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import load

TABLES = load()
FABRIC, SUBNET, IMEX, NONE = {"fabric_manager"}, {"fabric_manager", "subnet_manager"}, {"imex"}, set()


def services(name, count, nvswitches):
    asked = read_question(TABLES, {"os": "ubuntu 24.04", "gpus": [name] * count})
    return fabric_services(TABLES, asked.gpus, nvswitches)


@pytest.mark.parametrize(
    ("name", "count", "nvswitches", "expected"),
    [
        ("Tesla V100-SXM3-32GB", 16, 12, FABRIC), ("Tesla V100-SXM3-32GB", 16, None, FABRIC),
        ("Tesla V100-SXM3-32GB", 16, 0, NONE), ("Tesla V100-SXM2-32GB", 8, None, NONE),
        ("NVIDIA A100-SXM4-80GB", 8, 6, FABRIC), ("NVIDIA A100-SXM4-80GB", 8, None, FABRIC),
        ("NVIDIA A100-SXM4-80GB", 8, 0, NONE), ("NVIDIA A100-SXM4-80GB", 4, None, NONE), ("A100", 8, None, FABRIC),
        ("NVIDIA A100-SXM4-80GB", 16, None, FABRIC), ("NVIDIA A100-PCIE-40GB", 8, None, NONE),
        ("NVIDIA H200", 8, 4, FABRIC), ("NVIDIA H100 NVL", 8, 0, NONE), ("GeForce RTX 4090", 8, 1, FABRIC),
        ("B200", 8, 0, SUBNET), ("B200", 8, None, SUBNET), ("B200", 7, 0, NONE), ("B300", 8, 0, SUBNET),
        ("B100", 8, 0, SUBNET), ("RTX PRO 6000 Blackwell", 8, 0, NONE),
        ("GB200", 4, 0, IMEX), ("GB300", 4, None, IMEX), ("31C3", 4, 0, IMEX), ("GB200", 1, 0, IMEX), ("GH200", 1, 0, NONE),
    ],
)  # fmt: skip
def test_services(name, count, nvswitches, expected):
    assert fabric_services(TABLES, (), nvswitches) == NONE
    assert services(name, count, nvswitches) == expected
