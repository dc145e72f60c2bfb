# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fact gpu_rdma of recorded servers."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import rdma_facts
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.rdma_helper import adapter, peermem, server

TCLASS = "/sys/devices/pci0000:10/0000:10:01.0/0000:12:00.0/infiniband/mlx5_0/tc/1/traffic_class"


def read(place, files, run=None):
    return rdma_facts.read_rdma(tree(place, files), FileTree(str(place / "sys")), run)


def test_a_host_without_adapters(tmp_path):
    asked = []
    found = read(tmp_path, server(), asked.append)
    assert asked == []  # no program is started for it
    assert found == {
        "adapters": [],
        "recorded": False,
        "ipoib": {},
        "dcb": {},
        "dcb_program": False,
        "dcb_agent": False,
        "traffic_class": {"nccl": None, "forced": {}},
        "gpudirect": None,
    }


def test_a_server_with_both_kinds(tmp_path):
    files = {
        **server(adapter(0), adapter(1, "Ethernet")),
        **peermem(),
        "/etc/nccl.conf": "# set for the fabric\nNCCL_IB_TC=106\n",
        "/proc/99/comm": "lldpad\n",
        "/var/lib/allreduce/rdma.json": "{}",
        TCLASS: "Global tclass=96\n",
    }
    asked = []
    found = read(tmp_path, files, lambda arguments: asked.append(arguments[-1]))
    assert [one["name"] for one in found["adapters"]] == ["mlx5_0", "mlx5_1"]
    assert set(asked) == set(found["dcb"]) == {"ens1f0np0"}
    assert found["ipoib"] == {"ib0": {"mode": "datagram", "mtu": 2044}}
    assert found["recorded"] and found["dcb_agent"] and not found["dcb_program"]
    assert found["traffic_class"] == {"nccl": "106", "forced": {"mlx5_0": 96}}
    assert found["gpudirect"]["peermem"]["registered"] is True
    assert found["gpudirect"]["verbs"]["code"] == "not_asked"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (None, None),
        ("NCCL_IB_TC=106\nNCCL_IB_TC=0\n", "106"),
        ("#NCCL_IB_TC=106\n", None),
        ("NCCL_IB_TC = 106\n", None),
        (" NCCL_IB_TC=106\n", None),
        ("NCCL_IB_TC=106 # DSCP 26\n", "106 # DSCP 26"),
        ("NCCL_IB_TC\n", None),
    ],
)
def test_the_file_as_nccl_reads_it(tmp_path, text, value):
    files = server() if text is None else {**server(), "/etc/nccl.conf": text}
    assert read(tmp_path, files)["traffic_class"]["nccl"] == value
