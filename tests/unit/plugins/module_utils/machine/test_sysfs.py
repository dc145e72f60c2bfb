# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What single files of /sys mean; whole machines are in test_gpu_node.py."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.sysfs import _numa, _rocev2_gid_index

IPV4 = "0000:0000:0000:0000:0000:ffff:0a00:0001"
ROUTABLE = "2001:0db8:0000:0000:0000:0000:0000:0001"
LINK_LOCAL = "fe80:0000:0000:0000:0e42:a1ff:fe00:0001"
EMPTY = "0000:0000:0000:0000:0000:0000:0000:0000"


@pytest.mark.parametrize(
    ("nodes", "number", "found"),
    [([0], -1, 0), ([0, 1], -1, None), ([], -1, None), ([0, 1], 1, 1), ([0], None, None)],
)
def test_a_device_without_a_numa_node_is_on_the_only_one(tmp_path, nodes, number, found):
    for node in nodes:
        (tmp_path / "devices" / "system" / "node" / f"node{node}").mkdir(parents=True)
    assert _numa(FileTree(str(tmp_path)), number) == found


@pytest.mark.parametrize(
    ("gids", "index"),
    [
        ([("RoCE v2", LINK_LOCAL)], None),
        ([("RoCE v2", EMPTY)], None),
        ([("IB/RoCE v1", IPV4), ("RoCE v2", IPV4)], 1),
        ([("RoCE v2", LINK_LOCAL), ("RoCE v2", ROUTABLE)], 1),
        ([("RoCE v2", ROUTABLE), ("RoCE v2", IPV4)], 1),
        ([("RoCE v2", IPV4), ("RoCE v2", IPV4)], 0),
    ],
)
def test_the_gid_that_is_routed(tmp_path, gids, index):
    for folder in ("gids", "gid_attrs/types"):
        (tmp_path / "port" / folder).mkdir(parents=True)
    for number, (kind, gid) in enumerate(gids):
        (tmp_path / "port" / "gids" / str(number)).write_text(gid + "\n")
        (tmp_path / "port" / "gid_attrs" / "types" / str(number)).write_text(kind + "\n")
    assert _rocev2_gid_index(FileTree(str(tmp_path)), "/port") == index
