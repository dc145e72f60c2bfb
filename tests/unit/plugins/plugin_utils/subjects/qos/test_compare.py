# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Classes and rules that run, beside those that were decided."""

import json

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host.tc import parse_classes
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.drift import checks
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Comparison, Remedy, Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.qos import QosNode
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.qos.compare import compare_absent, compare_shares
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.qos.decide import Shaping, Share
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.qos_helper import CLASSES_TEXT

CLASSES = (Share("10", 160_000_000, 200_000_000, 0), Share("20", 40_000_000, 200_000_000, 1))
HTB = {"root": {"kind": "htb", "handle": "a11e:"}, "classes": parse_classes(CLASSES_TEXT)}


def compared(shaped=None, table="d", ifb="", **interfaces):
    found = {
        "eth0": {"shaped": HTB if shaped is None else shaped},
        **{name: {"shaped": one} for name, one in interfaces.items()},
    }
    node = parse(QosNode, json.loads(json.dumps({"table": table, "interfaces": found})), "gpu_qos")
    return {one.subject: one for one in compare_shares([Shaping("eth0", 200_000_000, CLASSES, "", ifb)], "d", node)}


def test_as_declared():
    found = compared()
    assert {one.status for one in found.values()} == {Status.AS_PLANNED}
    assert found["training on eth0"].observed == "160mbit to 200mbit"
    assert found["rate of eth0"].observed == "200mbit" and len(found) == 4


@pytest.mark.parametrize(("table", "status"), [(None, Status.MISSING), ("other", Status.DIFFERS)])
def test_the_rules(table, status):
    assert compared(table=table)["rules"].status is status


def test_a_class_with_another_share():
    classes = [dict(one, rate=100_000_000) if one["handle"] == "a11e:10" else one for one in HTB["classes"]]
    found = compared({**HTB, "classes": classes})
    assert [one.subject for one in found.values() if one.differs] == ["training on eth0"]
    assert found["training on eth0"].observed == "100mbit to 200mbit"


@pytest.mark.parametrize("shaped", [{"root": {"kind": "mq", "handle": "0:"}}, {"root": None}])
def test_an_interface_without_classes(shaped):
    statuses = {name: one.status for name, one in compared(shaped).items() if name != "rules"}
    assert set(statuses.values()) == {Status.MISSING} and len(statuses) == 3


def test_arriving_packets():
    passing = {**HTB, "redirect": "ifb-eth0"}
    found = compared(passing, ifb="ifb-eth0", **{"ifb-eth0": HTB})
    assert {one.status for one in found.values()} == {Status.AS_PLANNED} and "training on ifb-eth0" in found
    # The device has its classes, but nothing gets there.
    found = compared(ifb="ifb-eth0", **{"ifb-eth0": HTB})
    assert found["training on ifb-eth0"].status is Status.MISSING and not found["training on eth0"].differs


def test_a_node_that_is_to_have_none():
    assert compare_absent(False) == []
    assert [(one.status, one.remedy) for one in compare_absent(True)] == [(Status.UNWANTED, Remedy.APPLY)]


def test_the_checks_say_what_to_do():
    classes = [dict(one, rate=100_000_000) if one["handle"] == "a11e:10" else one for one in HTB["classes"]]
    found = {one["name"]: one for one in checks(compared({**HTB, "classes": classes}).values())}
    assert found["qos_rules"]["status"] == "passed" and found["qos_shares"]["status"] == "failed"
    assert found["qos_shares"]["reason"] == "training on eth0 is 100mbit to 200mbit instead of 160mbit to 200mbit"
    assert found["qos_shares"]["fix"] == "run site again"


AS_PLANNED = (Status.AS_PLANNED, Remedy.NONE)
SLOW = [{**one, "rate": one["rate"] // 2} for one in HTB["classes"]]
LOW = [{**one, "ceil": one["ceil"] // 2} if one["ceil"] else one for one in HTB["classes"]]
UNKNOWN = [{**one, "rate": None} for one in HTB["classes"]]
MISSING = (Status.MISSING, Remedy.APPLY, "shares")
DIFFERS = (Status.DIFFERS, Remedy.APPLY, "shares")


@pytest.mark.parametrize(
    ("changed", "whole"),
    [
        ({}, ("rules", "as declared", "as declared", *AS_PLANNED, "rules")),
        ({"table": "x"}, ("rules", "as declared", "others", Status.DIFFERS, Remedy.APPLY, "rules")),
        ({"table": None}, ("rules", "as declared", "", Status.MISSING, Remedy.APPLY, "rules")),
        ({}, ("rate of eth0", "200mbit", "200mbit", *AS_PLANNED, "shares")),
        ({"shaped": {**HTB, "classes": SLOW}}, ("rate of eth0", "200mbit", "100mbit", *DIFFERS)),
        ({"shaped": {**HTB, "classes": UNKNOWN}}, ("rate of eth0", "200mbit", "", *MISSING)),
        ({"shaped": {**HTB, "classes": []}}, ("rate of eth0", "200mbit", "", *MISSING)),
        ({"shaped": {"root": None}}, ("rate of eth0", "200mbit", "", *MISSING)),
        ({}, ("training on eth0", "160mbit to 200mbit", "160mbit to 200mbit", *AS_PLANNED, "shares")),
        ({}, ("everything else on eth0", "40mbit to 200mbit", "40mbit to 200mbit", *AS_PLANNED, "shares")),
        ({"shaped": {**HTB, "classes": SLOW}}, ("everything else on eth0", "40mbit to 200mbit", "20mbit to 200mbit", *DIFFERS)),
        ({"shaped": {**HTB, "classes": LOW}}, ("training on eth0", "160mbit to 200mbit", "160mbit to 100mbit", *DIFFERS)),
        ({"shaped": {**HTB, "classes": UNKNOWN}}, ("training on eth0", "160mbit to 200mbit", "", *MISSING)),
        ({"shaped": {**HTB, "classes": []}}, ("training on eth0", "160mbit to 200mbit", "", *MISSING)),
    ],
)  # fmt: skip
def test_a_comparison_is_told_whole(changed, whole):
    assert compared(**changed)[whole[0]] == Comparison("qos", *whole)


@pytest.mark.parametrize(
    ("shaped", "device", "there"),
    [
        ({**HTB, "redirect": "ifb-eth0"}, HTB, True),
        ({**HTB, "redirect": "ifb-eth1"}, HTB, False),
        ({**HTB, "redirect": "ifb-eth0"}, {"root": {"kind": "htb", "handle": "1:"}, "classes": HTB["classes"]}, False),
    ],
)
def test_arriving_packets_have_a_share_where_they_pass_our_device(shaped, device, there):
    found = compared(shaped, ifb="ifb-eth0", **{"ifb-eth0": device})
    assert [one.subject for one in found.values() if one.differs] == (
        [] if there else ["rate of ifb-eth0", "training on ifb-eth0", "everything else on ifb-eth0"]
    )


def test_an_interface_that_is_gone():
    for interfaces in ({}, {"eth0": {}, "ifb-eth0": {}}):  # or that tc shows nothing of
        node = parse(QosNode, {"table": "d", "interfaces": interfaces}, "gpu_qos")
        found = compare_shares([Shaping("eth0", 200_000_000, CLASSES, "", "ifb-eth0")], "d", node)
        assert [one.status for one in found] == [Status.AS_PLANNED, *[Status.MISSING] * 6]
