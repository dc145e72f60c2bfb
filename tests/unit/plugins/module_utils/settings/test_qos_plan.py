# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines that tc gets, and when an interface is as wanted."""

import copy

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import tc
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import qos_plan
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.qos_helper import CLASSES_TEXT, INTERFACE


def live(**more):
    root = {"kind": "htb", "handle": "a11e:", "options": {"default": "0x20"}}
    return {
        "root": root, "restorable": False, "ingress": None, "classes": tc.parse_classes(CLASSES_TEXT), "leaf": "",
        "redirect": None, "filters": 0, **more,
    }  # fmt: skip


def with_class(number, **more):
    classes = copy.deepcopy(live()["classes"])
    classes[number].update(more)
    return live(classes=classes)


def test_the_lines():
    lines = qos_plan.tree_lines("eth0", dict(INTERFACE, leaf="fq_codel", rate=25 * 10**9))
    assert lines[0] == "qdisc replace dev eth0 root handle a11e: htb default 20"
    assert lines[1].startswith(
        "class add dev eth0 parent a11e: classid a11e:1 htb rate 25000000000bit ceil 25000000000bit"
    )
    assert lines[2] == (
        "class add dev eth0 parent a11e:1 classid a11e:10 htb rate 160000000bit ceil 200000000bit "
        "burst 20000 cburst 25000 quantum 20000 prio 0"
    )
    assert lines[3] == "qdisc add dev eth0 parent a11e:10 handle a110: fq_codel"
    assert len(lines) == 6


@pytest.mark.parametrize("rate", [1000, 10**6, 10**9, 25 * 10**9])
def test_no_quantum_that_the_kernel_warns_about(rate):
    quantum = int(qos_plan.tree_lines("eth0", dict(INTERFACE, rate=rate))[1].split("quantum ")[1].split()[0])
    assert 9018 <= quantum <= 200000


@pytest.mark.parametrize(
    ("found", "same"),
    [
        (live(), True),
        (None, False),
        (live(root={"kind": "mq", "handle": "0:", "options": {}}), False),
        (live(root={"kind": "htb", "handle": "a11e:", "options": {"default": "0x10"}}), False),
        (live(root={"kind": "htb", "handle": "a11e:", "options": {"default": 32}}), True),
        (live(leaf="fq_codel"), False),
        (live(classes=[]), False),
        (with_class(1, rate=159_000_000), False),
        (with_class(1, rate=160_000_100), True),
        (with_class(1, rate=None), False),
        (with_class(1, prio=1), False),
        (with_class(2, ceil=100_000_000), False),
        (with_class(2, parent="a11e:10"), False),
    ],
)
def test_when_it_is_shaped(found, same):
    assert qos_plan.is_shaped(INTERFACE, found) is same


@pytest.mark.parametrize(
    ("ifb", "found", "other", "same"),
    [
        ("", live(), None, True),
        ("", None, None, True),
        ("", live(redirect="ifb-eth0", ingress="ingress"), None, False),
        # Somebody else's is not ours.
        ("", live(redirect="ifb0", ingress="ingress"), None, True),
        ("ifb-eth0", live(redirect="ifb-eth0", ingress="ingress"), live(filters=1), True),
        ("ifb-eth0", live(redirect="ifb-eth0", ingress="ingress"), live(filters=2), False),
        ("ifb-eth0", live(redirect="ifb-eth0", ingress="ingress"), None, False),
        ("ifb-eth0", live(), live(filters=1), False),
    ],
)
def test_when_arriving_packets_are(ifb, found, other, same):
    one = dict(INTERFACE, ifb=ifb, filters=["x"] if ifb else [])
    assert qos_plan.is_ingress_shaped(one, found, other) is same


def test_what_is_shown():
    one = dict(INTERFACE, ifb="ifb-eth0", leaf="fq_codel")
    assert qos_plan.shown(one) == qos_plan.shown_live(live(leaf="fq_codel", redirect="ifb-eth0"))
    assert qos_plan.shown_live(None) == "qdisc noqueue 0: root\n"
    assert qos_plan.shown_live(live(root={"kind": "mq", "handle": "0:", "options": {}})) == "qdisc mq 0: root\n"


def test_rules_of_groups_that_are_not_there_wait():
    text = 'a\n\tip daddr @peers4 socket cgroupv2 level 2 "a.slice/b" meta priority set a11e:10\nb\n'
    assert qos_plan.loadable(text, {"a.slice/b"}.__contains__) == text
    assert qos_plan.loadable(text, lambda _path: False) == "a\nb\n"
