# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Classes of a real interface in a network namespace: applied, kept, changed, refused, and put back."""

import json
import os

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import qos, qos_program
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.qos_facts import RECORD, read_live, read_qos
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.qos_helper import (
    DIGEST,
    INTERFACE,
    RULES,
    lacking,
    spaces,
)
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.tuning_helper import snapshot

REDIRECT = ["protocol ip prio 4 u32 match ip src 10.99.0.2 match ip sport 5201 0xffff flowid a11e:10"]
needs_nft = pytest.mark.skipif(bool(lacking("tc", "nft")), reason=str(lacking("tc", "nft")))


@pytest.fixture
def space():
    yield from spaces()


def replace(path, content):
    with open(path, "wb") as stream:
        stream.write(content)


@pytest.fixture
def machine(space, tmp_path):
    return qos.Machine(FileTree(str(tmp_path)), replace, space.run)


def wanted(*interfaces, rules=False, **more):
    """What the role asks for, without units: no systemd runs here."""
    table = {"table": RULES, "digest": DIGEST} if rules else {"table": "", "digest": None}
    declared = json.dumps({"digest": table["digest"], "interfaces": list(interfaces)})
    files = [{"path": qos.DECLARATION, "content": declared}, {"path": qos.TABLE_FILE, "content": table["table"]}]
    return {"interfaces": list(interfaces), "files": [{**one, "mode": "0600"} for one in files], **table, **more}


def interface(**more):
    return {**INTERFACE, **more}


def settled(machine, what):
    result = qos.settle(machine, what)
    assert result["problems"] == []
    return [(one["kind"], one["subject"]) for one in result["changes"] if one["kind"] != "file"]


def absent():
    return dict(qos.NOTHING)


# What an interface may have before. tc makes each of them here; the kernel's own is the first.
BEFORE = {
    "noqueue": None,
    "pfifo": "handle 7: pfifo limit 77",
    "bfifo": "handle 8002: bfifo limit 70000",
    "mq": "handle 9: mq",
    "pfifo_fast": "handle 8: pfifo_fast",
}


@pytest.mark.parametrize("kind", BEFORE)
def test_there_and_back(space, machine, tmp_path, kind):
    if BEFORE[kind]:
        space.on(space.names[0], *f"tc qdisc add dev train0 root {BEFORE[kind]}".split())
    before = (space.state(), snapshot(tmp_path))
    # Check mode shows the class table and changes nothing.
    result = qos.settle(machine, wanted(interface()), check=True)
    (table,) = [one for one in result["diff"] if one["after_header"] == "interface train0"]
    assert table["before"].startswith(f"qdisc {kind} ")
    assert table["after"].splitlines() == [
        "qdisc htb a11e: root",
        "class a11e:1 rate 200mbit",
        "class a11e:10 prio 0 rate 160mbit ceil 200mbit",
        "class a11e:20 prio 1 rate 40mbit ceil 200mbit",
    ]
    assert (space.state(), snapshot(tmp_path)) == before
    assert settled(machine, wanted(interface())) == [("interface", "train0")]
    assert [one["handle"] for one in read_live(space.output)["train0"]["classes"]] == ["a11e:1", "a11e:10", "a11e:20"]
    assert os.stat(str(tmp_path / RECORD.lstrip("/"))).st_mode & 0o777 == 0o600
    # A second run changes nothing, a change of the shares does, and all of it goes back.
    assert qos.settle(machine, wanted(interface()))["changed"] is False
    assert qos.settle(machine, wanted(interface()), check=True)["changed"] is False
    more = interface(
        classes=[dict(INTERFACE["classes"][0], rate=100_000_000), dict(INTERFACE["classes"][1], rate=100_000_000)]
    )
    assert settled(machine, wanted(more)) == [("interface", "train0")]
    assert settled(machine, absent()) == [("interface", "train0")]
    assert (space.state(), snapshot(tmp_path)) == before
    assert qos.settle(machine, absent())["changed"] is False


@needs_nft
def test_rules_are_loaded_and_taken_away(space, machine, tmp_path):
    before = (space.state(), snapshot(tmp_path))
    assert settled(machine, wanted(interface(), rules=True)) == [("table", "allreduce_qos"), ("interface", "train0")]
    assert "meta priority set a11e:10" in space.output(["nft", "list", "table", "inet", "allreduce_qos"])
    assert qos.settle(machine, wanted(interface(), rules=True))["changed"] is False
    space.on(space.names[0], "nft", "flush", "ruleset")
    assert settled(machine, wanted(interface(), rules=True)) == [("table", "allreduce_qos")]
    settled(machine, absent())
    assert (space.state(), snapshot(tmp_path)) == before


def test_arriving_packets_pass_classes_too(space, machine, tmp_path):
    if space.run(["ip", "link", "add", "name", "probe0", "type", "ifb"])[0]:
        pytest.skip("this kernel has no ifb")
    space.on(space.names[0], "ip", "link", "del", "probe0")
    before = (space.state(), snapshot(tmp_path))
    more = interface(ifb="ifb-train0", filters=REDIRECT)
    assert settled(machine, wanted(more)) == [("interface", "train0")]
    live = read_live(space.output)
    assert live["train0"]["redirect"] == "ifb-train0" and live["ifb-train0"]["filters"] == 1
    assert len(live["ifb-train0"]["classes"]) == 3
    assert qos.settle(machine, wanted(more))["changed"] is False
    # Packets still arrive.
    assert "1 received" in space.on(space.names[0], "ping", "-c1", "-W2", "10.99.0.2")
    space.on(space.names[0], "tc", "qdisc", "del", "dev", "train0", "ingress")
    assert settled(machine, wanted(more)) == [("interface", "train0")]
    # Without it again, the classes of what is sent stay as they are.
    assert settled(machine, wanted(interface())) == [("interface", "train0")]
    live = read_live(space.output)
    assert "ifb-train0" not in live and live["train0"]["ingress"] is None and len(live["train0"]["classes"]) == 3
    settled(machine, wanted(more))
    settled(machine, absent())
    assert (space.state(), snapshot(tmp_path)) == before


@pytest.mark.parametrize("earlier", [None, interface()])
def test_what_fails_leaves_everything_as_it_was(space, machine, tmp_path, earlier):
    if earlier:
        settled(machine, wanted(earlier))
    before = (space.state(), snapshot(tmp_path), read_live(space.output))
    broken = interface(leaf="no_such_qdisc", rate=100_000_000)
    result = qos.settle(machine, wanted(broken))
    assert [one["code"] for one in result["problems"]] == ["command_failed"]
    assert result["problems"][0]["subject"] == "tc qdisc add dev train0 parent a11e:10 handle a110: no_such_qdisc"
    assert (space.state(), snapshot(tmp_path), read_live(space.output)) == before


def test_one_of_two_interfaces_fails(space, machine, tmp_path):
    before = (space.state(), snapshot(tmp_path))
    result = qos.settle(machine, wanted(interface(), interface(name="zzz0")))
    assert result["problems"] and (space.state(), snapshot(tmp_path)) == before


def test_somebody_elses_queueing_discipline_is_left_alone_on_the_way_back(space, machine):
    settled(machine, wanted(interface()))
    space.on(
        space.names[0], *["tc", "qdisc", "replace", "dev", "train0", "root", "handle", "9:", "pfifo", "limit", "9"]
    )
    assert settled(machine, absent()) == []
    assert read_live(space.output)["train0"]["root"]["handle"] == "9:"


def test_an_interface_that_is_gone_is_forgotten(space, machine, tmp_path):
    settled(machine, wanted(interface()))
    space.on(space.names[0], "ip", "link", "del", "train0")
    assert settled(machine, absent()) == []
    assert snapshot(tmp_path) == {}


@needs_nft
@pytest.mark.parametrize("arguments", [[], ["train0"]])
def test_the_program_shapes_an_interface_that_came_back(space, machine, arguments):
    settled(machine, wanted(interface(), rules=True))
    after = (space.state(), read_live(space.output))
    recorded = machine.tree.text(RECORD)
    here, there = space.names
    space.on(here, "nft", "flush", "ruleset")
    space.on(here, "tc", "qdisc", "del", "dev", "train0", "root")
    assert qos_program.main(arguments, machine.tree, space.run) is None
    assert (space.state(), read_live(space.output)) == after
    # The kernel keeps the classes of a link that is only set down.
    space.on(here, "ip", "link", "set", "train0", "down")
    space.on(here, "ip", "link", "set", "train0", "up")
    assert len(read_live(space.output)["train0"]["classes"]) == 3
    # A driver that is loaded again makes another interface of the same name.
    space.on(here, "ip", "link", "del", "train0")
    assert qos_program.main([], machine.tree, space.run) is None
    space.on(here, "ip", "link", "add", "train0", "type", "veth", "peer", "name", "peer0", "netns", there)
    assert qos_program.main(arguments, machine.tree, space.run) is None
    assert len(read_live(space.output)["train0"]["classes"]) == 3
    assert machine.tree.text(RECORD) == recorded


def test_the_program_leaves_other_interfaces_alone(space, machine):
    settled(machine, wanted(interface()))
    space.on(space.names[0], "tc", "qdisc", "del", "dev", "train0", "root")
    assert qos_program.main(["other0"], machine.tree, space.run) is None
    assert read_live(space.output)["train0"]["classes"] == []


def test_the_program_without_a_declaration(tmp_path):
    assert qos_program.main([], FileTree(str(tmp_path)), lambda *_given: (127, "")).startswith(
        "/etc/allreduce/qos.json"
    )


def test_the_fact_of_a_real_interface(space, machine, tmp_path):
    settled(machine, wanted(interface()))
    (tmp_path / "sys/fs/cgroup/training.slice").mkdir(parents=True)
    fact = read_qos(machine.tree, space.output, ["training.slice", "gone.slice"], probe=True)
    assert fact["recorded"] and fact["tc"] and fact["cgroups"] == ["training.slice"]
    assert "10.99.0.1" in fact["interfaces"]["train0"]["addresses"]
    assert fact["interfaces"]["train0"]["shaped"]["root"]["kind"] == "htb"
    assert fact["kernel"]["htb"] is True and set(fact["kernel"]) == {"htb", "fq_codel", "ifb"}
    assert "probe0" not in fact["interfaces"]


# On a recorded tree nothing is started, and the files are the same.


def test_a_recorded_tree(tmp_path):
    machine = qos.Machine(FileTree(str(tmp_path)), replace)
    assert [one["kind"] for one in qos.settle(machine, wanted(interface()))["changes"]] == ["file", "file"]
    assert qos.settle(machine, wanted(interface()))["changed"] is False
    assert qos.settle(machine, absent())["changed"] is True
    assert snapshot(tmp_path) == {}


def test_units_are_read_again_and_restarted(tmp_path):
    ran = []

    def run(arguments, data=None):
        ran.append(" ".join(arguments))
        return (0, "[]") if arguments[0] in ("tc", "systemctl") else (1, "")

    machine = qos.Machine(FileTree(str(tmp_path)), replace, run)
    unit = {"path": qos.UNITS + qos.UNIT, "content": "[Unit]\n", "mode": "0644"}
    what = wanted()
    what["files"].append(unit)
    assert qos.settle(machine, what)["problems"] == []
    assert [one for one in ran if one.startswith("systemctl")] == [
        "systemctl daemon-reload", "systemctl restart allreduce-qos.service",
    ]  # fmt: skip
    del ran[:]
    assert qos.settle(machine, absent())["problems"] == []
    assert [one for one in ran if one.startswith("systemctl")] == [
        "systemctl stop allreduce-qos.service", "systemctl daemon-reload",
    ]  # fmt: skip
    assert snapshot(tmp_path) == {}


@pytest.mark.parametrize("killed", ["systemctl daemon-reload", "systemctl restart"])
def test_a_run_that_was_killed_before_systemd_read_the_units_goes_on(tmp_path, killed):
    """The files are as wanted then, and nothing else shows that the unit has not started, or that a removal is not over."""
    ran, ends = [], []

    def run(arguments, data=None):
        ran.append(" ".join(arguments))
        if ends and ran[-1].startswith(ends[0]):
            raise SystemExit
        return (0, "[]") if arguments[0] in ("tc", "systemctl") else (1, "")

    machine = qos.Machine(FileTree(str(tmp_path)), replace, run)
    what = wanted()
    what["files"].append({"path": qos.UNITS + qos.UNIT, "content": "[Unit]\n", "mode": "0644"})
    for declared, last in ((what, "systemctl restart allreduce-qos.service"), (absent(), "systemctl daemon-reload")):
        ends[:] = [killed if declared is what else "systemctl daemon-reload"]
        with pytest.raises(SystemExit):
            qos.settle(machine, declared)
        del ran[:], ends[:]
        assert qos.settle(machine, declared, check=True)["changed"] is True
        assert not [one for one in ran if one.startswith("systemctl")]
        answer = qos.settle(machine, declared)
        assert (answer["changed"], answer["problems"], ran[-1]) == (True, [], last)
        assert qos.settle(machine, declared)["changed"] is False
    assert snapshot(tmp_path) == {}


def test_a_unit_that_does_not_start_takes_its_files_back(tmp_path):
    def run(arguments, data=None):
        return (1, "no") if "restart" in arguments or arguments[0] == "nft" else (0, "[]")

    machine = qos.Machine(FileTree(str(tmp_path)), replace, run)
    what = wanted()
    what["files"].append({"path": qos.UNITS + qos.UNIT, "content": "[Unit]\n", "mode": "0644"})
    assert [one["detail"]["reason"] for one in qos.settle(machine, what)["problems"]] == ["no"]
    assert snapshot(tmp_path) == {}


def test_a_record_of_another_release_is_refused(tmp_path):
    machine = qos.Machine(FileTree(str(tmp_path)), replace)
    (tmp_path / "var/lib/allreduce").mkdir(parents=True)
    (tmp_path / RECORD.lstrip("/")).write_text('{"format": 9}')
    with pytest.raises(ValueError, match="has format 9; this release reads 1"):
        qos.settle(machine, absent())
