# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports as the kernel shows them: what counts as up, and which counters there are."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health.ports import read_ports
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree

NIC = {
    "name": "mlx5_0",
    "ports": [{"port": 1, "state": "ACTIVE", "rate_gbps": 400, "link_layer": "InfiniBand", "netdevs": ["ib0"]}],
}
PORT = "class/infiniband/mlx5_0/ports/1/"
INTERFACE = "class/infiniband/mlx5_0/device/net/ib0/operstate"


def read(place, files, **port):
    for path, text in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text)
    return read_ports(FileTree(str(place)), [{**NIC, "ports": [{**NIC["ports"][0], **port}]}])["mlx5_0/1"]


@pytest.mark.parametrize(("state", "interface", "up"), [
    ("ACTIVE", "up", True), ("ACTIVE", None, True), ("ACTIVE", "unknown", True), ("DOWN", "up", False), (None, "up", None),
    ("ACTIVE", "down", False),  # as EFA is, whose ports are always ACTIVE
])  # fmt: skip
def test_what_counts_as_up(tmp_path, state, interface, up):
    assert read(tmp_path, {INTERFACE: interface + "\n"} if interface else {}, state=state)["up"] is up


def test_counters_are_those_that_can_be_read(tmp_path):
    files = {
        "counters/symbol_error": "12\n",
        "counters/link_downed": "invalid\n",
        "hw_counters/rnr_nak_retry_err": "3\n",
    }
    found = read(tmp_path, {PORT + name: text for name, text in files.items()})
    assert found["counters"] == {"symbol_error": 12, "rnr_nak_retry_err": 3}
