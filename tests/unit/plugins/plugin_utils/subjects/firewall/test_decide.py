# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose the rules are, on which interfaces, at which ports; and what is refused before anything changes."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.firewall import (
    Chain,
    Firewalld,
    FirewallNode,
    Nft,
    Ufw,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.firewall.decide import decide
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.firewall.request import Request
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.sentences import describe
from hypothesis import given
from hypothesis import strategies as st

LINKS = {"eth0": ("192.0.2.1",), "eth1": ("10.0.0.1", "fe80::1", "fd00::1"), "eth2": ("10.0.1.1",)}
FIREWALLD, UFW = Firewalld(active=True, version="1.3.3"), Ufw(active=True)
STRANGER = Chain("ip", "filter", "INPUT", "iptables")
CLOSED = Chain("inet", "filter", "input")


def node(**more):
    return FirewallNode(**{"interfaces": LINKS, "ssh_ports": (22,), **more})


def wanted(**more):
    return Request(**{"addresses": ("10.0.0.1",), "peers": ("10.0.0.1", "10.0.0.2"), **more})


@pytest.mark.parametrize(
    ("here", "expected"),
    [
        (node(), "nftables"),
        (node(firewalld=FIREWALLD), "firewalld"),
        (node(ufw=UFW), "ufw"),
        (node(ufw=UFW, nft=Nft(closed=(STRANGER,))), "ufw"),
        (node(nft=Nft(closed=(CLOSED,))), "nftables"),
    ],
)
@pytest.mark.parametrize("asked", ["auto", None])
def test_whose_the_rules_are(here, expected, asked):
    rules, problems = decide(wanted(owner=asked or expected), here)
    assert not problems and rules.owner == expected


@pytest.mark.parametrize(
    ("request_", "here", "sentence"),
    [
        ({}, {"firewalld": FIREWALLD, "ufw": UFW}, "Both firewalld and ufw are active"),
        ({"owner": "ufw"}, {}, "firewall_owner is ufw, but the rules of this node belong to nftables"),
        ({"owner": "nftables"}, {"firewalld": FIREWALLD}, "but the rules of this node belong to firewalld"),
        ({}, {"nft": Nft(closed=(STRANGER,))}, "ip filter INPUT refuses by default and was made with iptables"),
        ({}, {"firewalld": Firewalld(active=True, version="0.8.2")}, "firewalld 0.8.2 has no policies; install 0.9 or later"),
        ({}, {"firewalld": Firewalld(active=True, version="0.9.3", unsaved=("public",))}, "zone public has runtime rules that are not saved"),
        ({"interfaces": ("eth7",)}, {}, "firewall_interfaces has eth7, which this node lacks; choose from eth0, eth1, eth2."),
        ({"addresses": ("10.9.9.9",)}, {}, "No interface of this node has 10.9.9.9"),
        ({"unknown": ("gpu-7",)}, {}, "The training address of gpu-7 is not known"),
    ],
)  # fmt: skip
def test_what_is_refused(request_, here, sentence):
    rules, problems = decide(wanted(**request_), node(**here))
    assert rules is None
    assert len(problems) == 1 and sentence in describe(problems[0])


@pytest.mark.parametrize(
    ("more", "interfaces", "addresses"),
    [
        ({}, ("eth1",), ("10.0.0.1", "fd00::1", "fe80::1")),
        ({"addresses": ("10.0.0.1", "10.0.1.1")}, ("eth1", "eth2"), ("10.0.0.1", "10.0.1.1", "fd00::1", "fe80::1")),
        ({"interfaces": ("eth2", "eth0")}, ("eth0", "eth2"), ("10.0.1.1", "192.0.2.1")),
    ],
)
def test_training_interfaces_and_all_that_reaches_them(more, interfaces, addresses):
    rules, _problems = decide(wanted(**more), node())
    assert (rules.interfaces, rules.addresses) == (interfaces, addresses)


@pytest.mark.parametrize(
    ("more", "ssh", "ports", "closed"),
    [
        ({}, (22,), ((1024, 65535),), ((1024, 65535),)),
        ({"open_ports": ((9100, 9100),)}, (22,), ((1024, 65535),), ((1024, 9099), (9101, 65535))),
        ({}, (22, 2222), ((1024, 2221), (2223, 65535)), ((1024, 2221), (2223, 65535))),
        ({"strict": True, "ports": ((443, 443), (29500, 29500))}, (), ((29500, 29500), (50000, 50999)), ((1024, 65535),)),
    ],
)  # fmt: skip
def test_ports(more, ssh, ports, closed):
    rules, _problems = decide(wanted(**more), node(ssh_ports=ssh))
    assert (rules.ports, rules.closed) == (ports, closed)


RANGES = st.lists(
    st.tuples(st.integers(1, 60000), st.integers(0, 5000)).map(lambda one: (one[0], sum(one))), max_size=3
)


@given(RANGES, RANGES, st.lists(st.integers(1, 65535), max_size=3), st.booleans(), st.integers(1, 65535))
def test_every_port(open_ports, ports, ssh, strict, port):
    """SSH and what is privileged stay as they were, strangers get in nowhere else, peers where training may listen."""
    asked = wanted(open_ports=tuple(open_ports), ports=tuple(ports), strict=strict)
    rules, _problems = decide(asked, node(ssh_ports=tuple(ssh)))

    def among(ranges):
        return any(first <= port <= last for first, last in ranges)

    if port < 1024 or port in ssh:
        assert not among(rules.ports) and not among(rules.closed)
    else:
        assert among(rules.closed) != among(open_ports)
        assert among(rules.ports) == (not strict or among(ports) or 50000 <= port <= 50999)


@pytest.mark.parametrize(
    ("version", "codes"),
    [("0.9", []), ("0.9.3", []), ("1.0", []), ("2.3.1", []), ("0.8.99", ["firewall_old_firewalld"]), (None, ["firewall_old_firewalld"])],
)  # fmt: skip
def test_firewalld_has_policies_from_0_9_on(version, codes):
    _rules, problems = decide(wanted(), node(firewalld=Firewalld(active=True, version=version)))
    assert [one.code for one in problems] == codes


@pytest.mark.parametrize(
    ("request_", "here", "sentences"),
    [
        ({}, {"firewalld": FIREWALLD, "ufw": UFW}, [
            "Both firewalld and ufw are active, and each undoes what the other does; disable one of them.",
        ]),
        ({"owner": "ufw"}, {}, [
            "firewall_owner is ufw, but the rules of this node belong to nftables; set it to auto, or let ufw take over first.",
        ]),
        ({}, {"nft": Nft(closed=(STRANGER, CLOSED, Chain("ip6", "filter", "INPUT", "iptables")))}, [
            "ip filter INPUT, ip6 filter INPUT refuses by default and was made with iptables, not by ufw or firewalld, so letting peers in "
            "would change rules of unknown origin; let ufw, firewalld or nftables manage this node.",
        ]),
        ({}, {"firewalld": Firewalld(active=True)}, [
            "firewalld 0 has no policies; install 0.9 or later from the distribution's updates.",
        ]),
        ({}, {"firewalld": Firewalld(active=True, version="0.8.2", unsaved=("public", "home"))}, [
            "firewalld 0.8.2 has no policies; install 0.9 or later from the distribution's updates.",
            "firewalld's zone public, home has runtime rules that are not saved, and a reload would lose them; save them with "
            "'firewall-cmd --runtime-to-permanent', or drop them with 'firewall-cmd --reload'.",
        ]),
        ({"interfaces": ("eth7", "eth0", "eth8")}, {}, [
            "firewall_interfaces has eth7, which this node lacks; choose from eth0, eth1, eth2.",
            "firewall_interfaces has eth8, which this node lacks; choose from eth0, eth1, eth2.",
        ]),
        ({"addresses": ("10.9.9.9", "10.0.0.1", "10.9.9.8")}, {}, [
            "No interface of this node has 10.9.9.9; set gpu_cluster_address and firewall_addresses to addresses that it has.",
            "No interface of this node has 10.9.9.8; set gpu_cluster_address and firewall_addresses to addresses that it has.",
        ]),
        ({"unknown": ("gpu-7", "gpu-8")}, {}, [
            "The training address of gpu-7 is not known, and without it gpu-7 would be shut out; set gpu_cluster_address there, or run "
            "without --limit.",
            "The training address of gpu-8 is not known, and without it gpu-8 would be shut out; set gpu_cluster_address there, or run "
            "without --limit.",
        ]),
    ],
)  # fmt: skip
def test_each_reason_is_one_sentence(request_, here, sentences):
    rules, problems = decide(wanted(**request_), node(**here))
    assert rules is None and [describe(one) for one in problems] == sentences


def test_an_iptables_chain_of_ufw_or_firewalld_is_their_own():
    for here in (node(ufw=UFW, nft=Nft(closed=(STRANGER,))), node(firewalld=FIREWALLD, nft=Nft(closed=(STRANGER,)))):
        assert decide(wanted(), here)[1] == []


def test_addresses_are_compared_whatever_their_spelling():
    here = node(interfaces={"eth1": ("10.0.0.1", "fd00:0::1"), "eth0": ("10.0.0.9",)})
    rules, problems = decide(wanted(addresses=("fd00::0001",)), here)
    assert (problems, rules.interfaces, rules.addresses) == ([], ("eth1",), ("10.0.0.1", "fd00::1"))
    assert rules.peers == ("10.0.0.1", "10.0.0.2")


def test_the_same_interface_twice_is_one():
    rules, _problems = decide(wanted(interfaces=("eth2", "eth2")), node())
    assert rules.interfaces == ("eth2",)
