# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs when an interface comes up: it gets what its driver has forgotten."""

import json
import shutil
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import dcb
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import rdma_program
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.tuning import Machine
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.rdma_helper import Bridging, adapter, server

NAME = "ens0f0np0"
PORT = {"interface": NAME, "apps": {"26": 3}, "pfc": [3], "ets": None}
DECLARED = {
    "interfaces": {
        NAME: {"ports": [PORT]},
        "ib0": {
            "values": [
                {"path": "/sys/class/net/ib0/mode", "value": "connected"},
                {"path": "/sys/class/net/ib0/mtu", "value": "65520"},
            ]
        },
        "eno1": {"ports": [dict(PORT, interface="eno1")]},
    }
}
pytestmark = pytest.mark.skipif(shutil.which("dcb") is None, reason="iproute2 without dcb")


@pytest.fixture
def node(tmp_path):
    files = {**server(adapter(0, "Ethernet"), adapter(1, netdev="ib0")), rdma_program.DECLARATION: json.dumps(DECLARED)}
    bridging = Bridging(tmp_path, NAME)
    machine = Machine(tree(tmp_path / "root", files), None, bridging.run)
    machine.port = lambda: dcb.read_port(bridging.output, NAME)
    return machine


def test_a_port_that_its_driver_has_reset(node, capsys):
    assert rdma_program.main(["--check", NAME], node) is None
    assert node.port()["apps"] == {}
    assert rdma_program.main([NAME], node) is None
    assert (node.port()["apps"], node.port()["pfc"]) == ({"26": 3}, [3])
    assert capsys.readouterr().out == f"{NAME}/dscp/26: none -> 3\n{NAME}/pfc: none -> 3\n" * 2
    assert rdma_program.main([NAME], node) is None and capsys.readouterr().out == ""
    assert not node.tree.exists("/var/lib/allreduce/rdma.json")  # what was before us is recorded once, by the module


def test_ip_over_infiniband(node, capsys):
    assert rdma_program.main(["ib0"], node) is None
    assert (node.tree.text("/sys/class/net/ib0/mode"), node.tree.text("/sys/class/net/ib0/mtu")) == (
        "connected",
        "65520",
    )


def test_an_interface_of_which_nothing_is_declared(node, capsys):
    assert rdma_program.main(["ens9"], node) is None and capsys.readouterr().out == ""


def test_a_port_without_bridging_is_told(node):
    assert rdma_program.main(["eno1"], node).startswith("eno1 has no data centre bridging")


@pytest.mark.parametrize("arguments", [[], ["--all"], ["a", "b"]])
def test_usage(node, arguments):
    assert rdma_program.main(arguments, node) == rdma_program.USAGE


def test_a_declaration_that_cannot_be_read(node):
    tree(Path(node.tree.root), {rdma_program.DECLARATION: "{}"})
    assert "cannot be applied" in rdma_program.main([NAME], node)


def test_a_program_that_is_missing_is_an_answer():
    assert rdma_program.run(["no-such-program"])[0] == 127
