# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports are set up and put back, through the real program dcb; files, modules and values on a recorded tree."""

import shutil

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import dcb
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import rdma, rdma_plan
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.rdma_describe import describe
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.tuning import Machine
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.rdma_helper import Bridging, adapter, server
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.tuning_helper import snapshot

pytestmark = pytest.mark.skipif(shutil.which("dcb") is None, reason="iproute2 without dcb")
ONE, TWO = "ens0f0np0", "ens1f0np0"
ETS = {
    "tsa": ["ets", "strict", "strict", "ets", "strict", "strict", "strict", "strict"],
    "bandwidth": [50, 0, 0, 50, 0, 0, 0, 0],
    "classes": [0, 0, 0, 3, 0, 0, 6, 0],
}
PORT = {"interface": ONE, "apps": {"26": 3, "48": 6}, "pfc": [3], "ets": ETS}
MODE = "/sys/class/net/ib0/mode"


def wanted(*ports, **more):
    return dict(rdma_plan.NOTHING, ports=list(ports), **more)


class Node:
    """A recorded server with one adapter of each kind, whose Ethernet ports have data centre bridging."""

    def __init__(self, place):
        self.root = place / "root"
        tree_of = tree(self.root, server(adapter(0, "Ethernet"), adapter(1, netdev="ib0")))
        self.bridging = Bridging(place, ONE, TWO)
        self.started = []
        self.fails = ()
        self.machine = Machine(tree_of, self.replace, self.run)

    def replace(self, path, content):
        with open(path, "wb") as stream:
            stream.write(content)

    def run(self, arguments):
        """dcb runs; what else would change this machine is only noted."""
        if tuple(arguments[:3]) in self.fails:
            return 1, "Attribute write: Operation not permitted"
        if arguments[0] == "dcb":
            return self.bridging.run(arguments)
        self.started.append(arguments)
        if arguments[0] == "modprobe":
            place = self.root / "sys/module" / arguments[-1].replace("-", "_")
            place.rmdir() if arguments[1] == "-r" else place.mkdir(parents=True)
        return 0, ""

    def port(self, name=ONE):
        return dcb.read_port(self.bridging.output, name)

    def settle(self, given, check=False):
        return rdma.settle(self.machine, given, check)


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


def test_a_port_is_set_up(node):
    answer = node.settle(wanted(PORT))
    assert answer["problems"] == []
    # The step that may take the link down comes last.
    assert [step["subject"] for step in answer["changes"]] == [
        f"{ONE}/{part}" for part in ("dscp/26", "dscp/48", "ets", "pfc")
    ]
    port = node.port()
    assert (port["apps"], port["pfc"], port["ets"]["classes"]) == ({"26": 3, "48": 6}, [3], ETS["classes"])
    assert rdma_plan.effective(port["ets"]) == ETS
    assert node.port(TWO)["apps"] == {}


def test_the_second_time_nothing_is_left_to_do(node):
    node.settle(wanted(PORT))
    assert node.settle(wanted(PORT)) == {"changed": False, "changes": [], "problems": [], "diff": []}


def test_check_mode_predicts_and_changes_nothing(node):
    before, port = snapshot(node.root), node.port()
    answer = node.settle(wanted(PORT), check=True)
    assert (snapshot(node.root), node.port()) == (before, port)
    assert answer["changes"] == node.settle(wanted(PORT))["changes"]
    (shown,) = answer["diff"]
    assert f"{ONE}/pfc: none\n" in shown["before"] and f"{ONE}/pfc: 3\n" in shown["after"]


def test_everything_is_put_back(node):
    node.run(["dcb", "app", "add", "dev", ONE, "dscp-prio", "26:5", "34:4"])
    node.run(["dcb", "pfc", "set", "dev", ONE, "prio-pfc", "all:off", "4:on"])
    before, port = snapshot(node.root), node.port()
    node.settle(wanted(PORT))
    assert node.port()["apps"] == {"26": 3, "34": 4, "48": 6}  # what others have declared stays
    answer = node.settle(rdma_plan.NOTHING)
    assert answer["changed"] and answer["problems"] == []
    assert (snapshot(node.root), node.port()) == (before, port)
    assert node.settle(rdma_plan.NOTHING)["changed"] is False


def test_what_is_declared_no_more_is_put_back(node):
    node.settle(wanted(PORT, dict(PORT, interface=TWO)))
    node.settle(wanted(dict(PORT, apps={"26": 4}, ets=None)))
    assert (node.port()["apps"], node.port(TWO)["apps"], node.port(TWO)["pfc"]) == ({"26": 4}, {}, [])
    assert node.port()["ets"]["tsa"] == ["vendor"] * 8
    node.settle(rdma_plan.NOTHING)
    assert node.port()["apps"] == {} and not (node.root / "var/lib/allreduce").exists()


def test_a_port_without_bridging_is_refused_before_anything_changes(node):
    before = snapshot(node.root)
    answer = node.settle(wanted(PORT, dict(PORT, interface="eno1")))
    assert [(one["code"], one["subject"]) for one in answer["problems"]] == [("no_bridging", "eno1")]
    assert describe(answer["problems"][0]).startswith("eno1 has no data centre bridging")
    assert (snapshot(node.root), node.port()["apps"]) == (before, {})


def test_what_a_driver_refuses_is_told_and_tried_again(node):
    node.fails = (("dcb", "pfc", "set"),)
    answer = node.settle(wanted(PORT))
    assert [(one["code"], one["subject"]) for one in answer["problems"]] == [("command_failed", f"{ONE}/pfc")]
    assert "Operation not permitted" in describe(answer["problems"][0])
    node.fails = ()
    assert [step["subject"] for step in node.settle(wanted(PORT))["changes"]] == [f"{ONE}/pfc"]
    node.settle(rdma_plan.NOTHING)
    assert (node.port()["apps"], node.port()["pfc"]) == ({}, [])


def test_what_a_driver_does_not_keep_is_told(node):
    node.machine.run = lambda arguments: (0, "") if arguments[1:3] == ["pfc", "set"] else node.run(arguments)
    (found,) = node.settle(wanted(PORT))["problems"]
    assert describe(found) == f"{ONE}/pfc was set to 3 and is none."


def test_what_could_not_be_put_back_stays_recorded(node):
    node.settle(wanted(PORT))
    node.fails = (("dcb", "app", "del"),)
    assert len(node.settle(rdma_plan.NOTHING)["problems"]) == 2
    node.fails = ()
    assert node.settle(rdma_plan.NOTHING)["problems"] == [] and node.port()["apps"] == {}


def test_files_modules_and_values(node):
    before = snapshot(node.root)
    unit = {"path": "/etc/systemd/system/x.service", "content": "[Unit]\n", "mode": "0644"}
    rule = {"path": "/etc/udev/rules.d/60-x.rules", "content": "#\n", "mode": "0644"}
    values = [{"path": MODE, "value": "connected"}, {"path": "/sys/class/net/none/mode", "value": "connected"}]
    given = wanted(files=[unit, rule], modules=["nvidia-peermem"], values=values)
    answer = node.settle(given)
    assert [step["kind"] for step in answer["changes"]] == ["file", "file", "module", "value"]
    assert node.started == [
        ["systemctl", "daemon-reload"],
        ["udevadm", "control", "--reload"],
        ["modprobe", "nvidia-peermem"],
    ]
    assert (node.root / MODE.lstrip("/")).read_text("utf-8") == "connected"
    assert node.settle(given)["changed"] is False
    node.settle(rdma_plan.NOTHING)
    assert node.started[-1] == ["modprobe", "-r", "nvidia-peermem"]
    after = snapshot(node.root)
    after.pop("sys/module")  # the recorded tree's own
    assert {path: text.strip() if isinstance(text, bytes) else text for path, text in after.items()} == {
        path: text.strip() if isinstance(text, bytes) else text for path, text in before.items() if path != "sys/module"
    }


@pytest.mark.parametrize("end", rdma_plan.READ, ids=" ".join)
def test_a_run_that_was_killed_goes_on(node, end):
    """The files are as wanted then, so that nothing else shows that no one has read them, or that a removal is not over."""
    before = snapshot(node.root)
    unit = {"path": "/etc/systemd/system/x.service", "content": "[Unit]\n", "mode": "0644"}
    rule = {"path": "/etc/udev/rules.d/60-x.rules", "content": "#\n", "mode": "0644"}

    def killed(arguments):
        if arguments == end:
            raise SystemExit
        return node.run(arguments)

    for given in (wanted(files=[unit, rule]), wanted()):
        with pytest.raises(SystemExit):
            rdma.settle(Machine(node.machine.tree, node.replace, killed), given)
        del node.started[:]
        assert node.settle(given, check=True)["changed"] is True and node.started == []
        assert node.settle(given)["changed"] is True and node.started == list(rdma_plan.READ)
        assert node.settle(given)["changed"] is False
    assert snapshot(node.root) == before


def test_files_that_were_not_read_are_read_the_next_time(node):
    node.fails = [("systemctl", "daemon-reload")]
    given = wanted(files=[{"path": "/etc/systemd/system/x.service", "content": "[Unit]\n", "mode": "0644"}])
    for what in (given, wanted()):
        assert [one["code"] for one in node.settle(what)["problems"]] == ["command_failed"]
    node.fails = ()
    assert node.settle(wanted())["problems"] == [] and not node.machine.tree.exists(rdma.PATH)


def test_a_module_that_somebody_else_has_loaded_stays(node):
    (node.root / "sys/module/nvidia_peermem").mkdir(parents=True)
    assert node.settle(wanted(modules=["nvidia-peermem"]))["changed"] is False
    assert node.settle(rdma_plan.NOTHING)["changed"] is False and node.started == []


def test_no_program_runs_on_a_recorded_tree(tmp_path):
    machine = Machine(tree(tmp_path, server(adapter(0, "Ethernet"))), lambda path, content: None)
    assert rdma.settle(machine, wanted(PORT), True) == {"changed": False, "changes": [], "problems": [], "diff": []}


def test_the_record_of_another_release_is_not_guessed(node):
    tree(node.root, {rdma.PATH: '{"format": 9}'})
    with pytest.raises(ValueError, match=r"rdma\.json has format 9; this release reads 1"):
        node.settle(rdma_plan.NOTHING)
