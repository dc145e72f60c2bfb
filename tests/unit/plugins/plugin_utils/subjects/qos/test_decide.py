# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which interfaces are shaped and how, and what is refused with its reason."""

from dataclasses import replace

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.qos import Interface, Qdisc, QosNode, Shaped
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.qos.decide import Share, decide, ifb_name
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.qos.rates import Share as Part
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.qos.request import Request
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.sentences import describe

HAS = {"htb": True, "ifb": True, "fq_codel": True}
WANTED = Request(address="10.0.0.1", peers=("10.0.0.2",))


def node(speed=10_000, shaped=None, **more):
    interfaces = {
        "eth0": Interface(("192.0.2.1",), 1000),
        "eth1": Interface(("10.0.0.1", "fd00::1"), speed, shaped),
    }
    return QosNode(**{"tc": True, "nft": True, "interfaces": interfaces, "kernel": HAS, **more})


def test_the_interface_of_the_cluster_address_gets_its_classes():
    (found,), problems = decide(WANTED, node())
    assert problems == []
    assert (found.name, found.rate, found.leaf, found.ifb) == ("eth1", 10**10, "fq_codel", "")
    assert found.classes == (Share("10", 8 * 10**9, 10**10, 0), Share("20", 2 * 10**9, 10**10, 1))
    assert sum(one.rate for one in found.classes) == found.rate


def test_a_kernel_without_fq_codel_keeps_the_leaf_of_htb():
    (found,), _problems = decide(WANTED, node(kernel={**HAS, "fq_codel": False}))
    assert found.leaf == ""


def test_named_interfaces_and_a_declared_rate():
    wanted = replace(WANTED, interfaces=("eth0", "eth1"), rate=500 * 10**6, guarantee=Part(rate=300 * 10**6))
    found, problems = decide(wanted, node())
    assert problems == []
    assert [(one.name, one.rate, one.classes[0].rate) for one in found] == [
        ("eth0", 500 * 10**6, 300 * 10**6), ("eth1", 500 * 10**6, 300 * 10**6),
    ]  # fmt: skip


def test_arriving_packets():
    (found,), problems = decide(replace(WANTED, ingress=True), node())
    assert problems == [] and found.ifb == "ifb-eth1" and found.filters


@pytest.mark.parametrize("name", ["eth0", "enp161s0f0", "enp161s0f0np0", "enp161s0f0np1"])
def test_names_that_the_kernel_takes(name):
    assert len(ifb_name(name)) <= 15 and ifb_name(name).startswith("ifb-")


def test_long_names_stay_apart():
    assert ifb_name("enp161s0f0np0") != ifb_name("enp161s0f0np1")


MQ = Shaped(root=Qdisc("mq", "0:"))
HTB = Shaped(root=Qdisc("htb", "1:"), restorable=False)
OURS = Shaped(root=Qdisc("htb", "a11e:"), restorable=False)


@pytest.mark.parametrize(
    ("wanted", "found", "expected"),
    [
        ({}, node(tc=False, kernel={"htb": False}), [("qos_no_tc", "tc")]),
        ({}, node(kernel={**HAS, "htb": False}), [("qos_no_module", "sch_htb")]),
        ({}, node(kernel={**HAS, "ifb": False}), []),
        ({"ingress": True}, node(kernel={**HAS, "ifb": False}), [("qos_no_module", "ifb")]),
        ({"ingress": True}, node(kernel={**HAS, "htb": False}), [("qos_no_module", "sch_htb")]),
        # What could not be tried is tried by the module, which goes back where it fails.
        ({}, node(kernel={"htb": None}), []),
        ({"address": "10.9.9.9"}, node(), [("qos_foreign_address", "10.9.9.9")]),
        ({"address": None}, node(), [("qos_foreign_address", "gpu_cluster_address")]),
        ({"interfaces": ("ib7",)}, node(), [("qos_no_interface", "ib7"), ("qos_unknown_rate", "ib7")]),
        ({}, node(speed=None), [("qos_unknown_rate", "eth1")]),
        ({}, node(speed=25_000), []),
        ({}, node(speed=40_000), [("qos_too_fast", "eth1")]),
        ({"rate": 25 * 10**9}, node(speed=40_000), []),
        ({"rate": 20 * 10**9}, node(), [("qos_rate_above_link", "eth1")]),
        ({"rate": 10**10 + 1}, node(), [("qos_rate_above_link", "eth1")]),
        ({"rate": 20 * 10**9}, node(speed=None), []),
        ({"guarantee": Part(rate=20 * 10**9)}, node(), [("qos_share_too_large", "20gbit")]),
        ({}, node(shaped=MQ), []),
        ({}, node(shaped=OURS), []),
        ({}, node(shaped=HTB), [("qos_foreign_qdisc", "eth1")]),
        ({"ingress": True}, node(shaped=Shaped(ingress="clsact")), [("qos_foreign_ingress", "eth1")]),
        ({"ingress": True}, node(shaped=Shaped(ingress="ingress", redirect="ifb-eth1")), []),
        ({}, node(shaped=Shaped(ingress="clsact")), []),
        ({"unknown": ("gpu-7",)}, node(), [("qos_unknown_peer", "gpu-7")]),
        ({"cgroups": ("a.slice",)}, node(), [("qos_no_cgroup", "a.slice")]),
        ({"cgroups": ("a.slice",)}, node(cgroups=("a.slice",)), []),
        ({"cgroups": ("a.slice",), "ingress": True}, node(cgroups=("a.slice",)), [("qos_ingress_cgroups", "a.slice")]),
        ({"peers": tuple(f"10.0.1.{n}" for n in range(60)), "ingress": True}, node(), [("qos_many_filters", "360")]),
    ],
)
def test_what_is_refused(wanted, found, expected):
    shapings, problems = decide(replace(WANTED, **wanted), found)
    assert [(one.code, one.subject) for one in problems] == expected
    assert bool(shapings) is not bool(expected)
    assert all(describe(one).endswith(".") for one in problems)


@pytest.mark.parametrize(
    ("wanted", "found", "sentences"),
    [
        ({}, node(tc=False), ["This node has no tc, which creates the classes; install package iproute2, or iproute-tc on Red Hat systems."]),
        ({}, node(kernel={"htb": False}), [
            "The kernel of this node has no sch_htb; install the distribution's package of extra modules (linux-modules-extra, "
            "kernel-modules-extra), or leave the node out with qos_state: absent.",
        ]),
        ({"address": None}, node(), [
            "No interface of this node has gpu_cluster_address; set gpu_cluster_address to an address that it has, or qos_interfaces.",
        ]),
        ({"interfaces": ("ib7",), "rate": 10**9}, node(), ["qos_interfaces has ib7, which this node lacks; choose from eth0, eth1."]),
        ({}, node(speed=None), ["The speed of eth1 is not known; set qos_rate to what the link carries, such as 10gbit."]),
        ({"rate": 20 * 10**9}, node(), ["qos_rate is 20gbit, but eth1 carries 10gbit; set it to at most that."]),
        ({"rate": 10 * 10**9}, node(), []),
        ({}, node(shaped=HTB), [
            "eth1 has the queueing discipline htb 1:, which another program has set and which could not be restored; remove it with 'tc qdisc "
            "del dev eth1 root', or name other interfaces in qos_interfaces.",
        ]),
        ({"ingress": True}, node(shaped=Shaped(ingress="clsact", redirect="eth9")), [
            "eth1 has filters of another program for incoming packets (clsact); remove them, or set qos_ingress: false.",
        ]),
        ({"peers": tuple(f"10.0.1.{n}" for n in range(43)), "ingress": True}, node(), [
            "Incoming packets would be matched against 258 filters in turn, and 256 is the limit; name the nodes' network in qos_extra_peers "
            "instead of single addresses, or set qos_ingress: false.",
        ]),
        ({"cgroups": ("a.slice", "b.slice"), "ingress": True}, node(cgroups=("a.slice", "b.slice")), [
            "Incoming packets have no control group yet, so those of a.slice, b.slice cannot be told apart; set qos_ingress: false, or use "
            "qos_ports instead of qos_cgroups.",
        ]),
        ({"unknown": ("gpu-7",), "cgroups": ("a.slice",)}, node(), [
            "The training address of gpu-7 is not known, and without it gpu-7 would have no share; set gpu_cluster_address there, or run "
            "without --limit.",
            "qos_cgroups has a.slice, which does not exist below /sys/fs/cgroup on this node; create it, or take it out.",
        ]),
    ],
)  # fmt: skip
def test_each_reason_is_one_sentence(wanted, found, sentences):
    shapings, problems = decide(replace(WANTED, **wanted), found)
    assert [describe(one) for one in problems] == sentences and bool(shapings) is not bool(sentences)


def test_256_filters_are_tried():
    peers = tuple(f"10.0.1.{n}" for n in range(128))
    found, problems = decide(replace(WANTED, peers=peers, dscp=(26, 46), ingress=True), node())
    assert problems == [] and len(found[0].filters) == 256


@pytest.mark.parametrize(
    ("name", "expected"),
    [("eth0", "ifb-eth0"), ("enp161s0f0n", "ifb-enp161s0f0n"), ("enp161s0f0np", "ifb-f5f24874e30")],
)
def test_the_device_of_arriving_packets_has_a_name_that_stays(name, expected):
    """A later release that named it otherwise would leave the old one behind."""
    assert ifb_name(name) == expected


@pytest.mark.parametrize(
    ("kernel", "there", "leaf"),
    [
        ({"fq_codel": True}, "", "fq_codel"),
        ({"fq_codel": False}, "fq_codel", ""),
        # Where the kernel was not tried, what is there tells.
        ({}, "fq_codel", "fq_codel"),
        ({}, "sfq", ""),
        ({}, None, ""),
    ],
)
def test_leaves(kernel, there, leaf):
    shaped = None if there is None else Shaped(root=Qdisc("htb", "a11e:"), restorable=False, leaf=there)
    (found,), problems = decide(WANTED, node(shaped=shaped, kernel={"htb": True, **kernel}))
    assert (problems, found.leaf) == ([], leaf)


def test_shares_are_those_that_are_asked_for():
    wanted = replace(WANTED, ceiling=Part(part=0.9), default_ceiling=Part(part=0.5), guarantee=Part(part=0.6))
    (found,), problems = decide(wanted, node())
    assert problems == []
    assert found.classes == (Share("10", 6 * 10**9, 9 * 10**9, 0), Share("20", 4 * 10**9, 5 * 10**9, 1))


def test_every_interface_that_has_the_address():
    links = {name: Interface(("10.0.0.1",), 1000) for name in ("eth2", "eth1")}
    found, problems = decide(WANTED, node(interfaces=links))
    assert problems == [] and [one.name for one in found] == ["eth1", "eth2"]
