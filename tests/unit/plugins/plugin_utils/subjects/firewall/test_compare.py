# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules that run beside those that were decided."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host.nft import digest_of
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.drift import checks
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Comparison, Remedy, Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.firewall import (
    Chain,
    Firewalld,
    FirewallNode,
    Kernel,
    Nft,
    Ufw,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.firewall.compare import (
    compare_absent,
    compare_rules,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.firewall.decide import Rules
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.firewall.nftables import table
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.firewall.request import Request

PEERS = ("10.0.0.1", "10.0.0.2", "fd00::/64")
ALL = ((1024, 65535),)


def rules(owner):
    return Rules(owner, ("eth0",), ("10.0.0.1",), PEERS, ALL, ALL)


def loaded(owner="nftables", peers=PEERS):
    return Nft(True, digest_of(table(rules(owner))), peers)


RIGHT = {
    "nftables": {"nft": loaded()},
    "ufw": {"nft": loaded("ufw"), "ufw": Ufw(True, True)},
    "firewalld": {"firewalld": Firewalld(True, "2.3", (), PEERS, True)},
}


def found(owner, wanted=None, **node):
    return list(checks(compare_rules(rules(owner), wanted or Request(), FirewallNode(**node))))


@pytest.mark.parametrize("owner", RIGHT)
def test_as_declared(owner):
    assert {one["name"]: one["status"] for one in found(owner, **RIGHT[owner])} == {
        "firewall_rules": "passed", "firewall_peers": "passed",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("owner", "node", "name", "words"),
    [
        ("nftables", {}, "firewall_rules", "rules of nftables is missing"),
        ("nftables", {}, "firewall_peers", "peers is missing"),
        ("nftables", {"nft": Nft(True, "0" * 16, PEERS)}, "firewall_rules", "is others instead of as declared"),
        ("ufw", RIGHT["firewalld"], "firewall_rules", "rules of ufw is others"),
        ("nftables", {"nft": loaded(peers=PEERS[1:])}, "firewall_peers", "is 2 peers, without 10.0.0.1 instead of 3 peers"),
        ("nftables", {"nft": loaded(peers=(*PEERS, "10.0.0.9"))}, "firewall_peers", "4 peers, with 10.0.0.9, which left"),
        ("nftables", {"nft": loaded(peers=("10.0.0.1-10.0.0.9",))}, "firewall_peers", "without 10.0.0.1"),
        ("ufw", {**RIGHT["ufw"], "ufw": Ufw(True, False)}, "firewall_rules", "ufw for peers is closed instead of open"),
        (
            "nftables",
            {"nft": Nft(True, loaded().digest, PEERS, (Chain("inet", "filter", "input"),))},
            "firewall_rules",
            "inet filter input for peers is closed instead of open",
        ),
        ("firewalld", {"firewalld": Firewalld(True, "2.3", (), None, False)}, "firewall_rules", "is missing"),
        ("firewalld", {"firewalld": Firewalld(True, "2.3", (), ("10.0.0.1",), True)}, "firewall_peers", "1 peers, without 10.0.0.2, fd00::/64"),
    ],
)  # fmt: skip
def test_what_differs(owner, node, name, words):
    (check,) = [one for one in found(owner, **node) if one["name"] == name]
    assert check["status"] == "failed"
    assert words in check["reason"] and check["fix"] == "run site again"


@pytest.mark.parametrize(
    ("kernel", "status"),
    [
        (Kernel("50000 50999", "29500", ""), "passed"),
        (Kernel("32768 60999", "29500", ""), "failed"),
        (Kernel("50000 50999", "", ""), "failed"),
        (Kernel(None, None, None), "failed"),
    ],
)
def test_what_strict_mode_narrows(kernel, status):
    strict = Request(strict=True, ports=((29500, 29500),))
    by_name = {one["name"]: one["status"] for one in found("nftables", strict, nft=loaded(), kernel=kernel)}
    assert by_name["firewall_kernel"] == status


def test_rules_that_nobody_asked_for():
    assert compare_absent(False) == []
    (check,) = checks(compare_absent(True))
    assert (check["name"], check["status"]) == ("firewall_rules", "failed")


AS_PLANNED = (Status.AS_PLANNED, Remedy.NONE)
OTHERS = Nft(True, "0" * 16, PEERS)


@pytest.mark.parametrize(
    ("owner", "node", "whole"),
    [
        ("nftables", RIGHT["nftables"], ("rules of nftables", "as declared", "as declared", *AS_PLANNED, "rules")),
        ("nftables", RIGHT["nftables"], ("peers", "3 peers", "3 peers", *AS_PLANNED, "peers")),
        ("nftables", {}, ("rules of nftables", "as declared", "", Status.MISSING, Remedy.APPLY, "rules")),
        ("nftables", {"nft": OTHERS}, ("rules of nftables", "as declared", "others", Status.DIFFERS, Remedy.APPLY, "rules")),
        ("nftables", {}, ("peers", "3 peers", "", Status.MISSING, Remedy.APPLY, "peers")),
        ("nftables", {"nft": loaded(peers=("10.0.0.1", "10.0.0.8", "10.0.0.9"))}, (
            "peers", "3 peers", "3 peers, without 10.0.0.2, fd00::/64, with 10.0.0.8, 10.0.0.9, which left",
            Status.DIFFERS, Remedy.APPLY, "peers",
        )),
        # However the kernel writes them.
        ("nftables", {"nft": loaded(peers=("10.0.0.1/32", "10.0.0.2", "FD00::/64", "fd00::1"))}, (
            "peers", "3 peers", "3 peers", *AS_PLANNED, "peers",
        )),
        ("ufw", RIGHT["ufw"], ("ufw for peers", "open", "open", *AS_PLANNED, "rules")),
        ("ufw", {**RIGHT["ufw"], "ufw": Ufw(True, False)}, ("ufw for peers", "open", "closed", Status.DIFFERS, Remedy.APPLY, "rules")),
        ("firewalld", RIGHT["firewalld"], ("rules of firewalld", "as declared", "as declared", *AS_PLANNED, "rules")),
        ("firewalld", {"nft": OTHERS}, ("rules of firewalld", "as declared", "others", Status.DIFFERS, Remedy.APPLY, "rules")),
    ],
)  # fmt: skip
def test_a_comparison_is_told_whole(owner, node, whole):
    found = {one.subject: one for one in compare_rules(rules(owner), Request(), FirewallNode(**node))}
    assert found[whole[0]] == Comparison("firewall", *whole)


def test_chains_that_nft_made_get_a_door():
    closed = (
        Chain("inet", "filter", "input", door=True),
        Chain("inet", "other", "in"),
        Chain("ip", "filter", "INPUT", "iptables"),
    )
    node = FirewallNode(nft=Nft(True, loaded().digest, PEERS, closed))
    found = [one for one in compare_rules(rules("nftables"), Request(), node) if one.subject.endswith("for peers")]
    assert [(one.subject, one.observed) for one in found] == [
        ("inet filter input for peers", "open"), ("inet other in for peers", "closed"),
    ]  # fmt: skip
    # ufw and firewalld have a way of their own.
    for owner in ("ufw", "firewalld"):
        found = compare_rules(rules(owner), Request(), FirewallNode(nft=Nft(closed=closed)))
        assert not [one for one in found if one.subject.startswith("inet ")]


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (Kernel("50000 50999", "29500", "8080"), (
            ("net.ipv4.ip_local_port_range", "50000 50999", "50000 50999", *AS_PLANNED, "kernel"),
            ("net.ipv4.ip_local_reserved_ports", "8080,29500", "29500", Status.DIFFERS, Remedy.APPLY, "kernel"),
        )),
        # The same ports, otherwise written.
        (Kernel("32768 60999", "29500,8080", "8080"), (
            ("net.ipv4.ip_local_port_range", "50000 50999", "32768 60999", Status.DIFFERS, Remedy.APPLY, "kernel"),
            ("net.ipv4.ip_local_reserved_ports", "8080,29500", "29500,8080", *AS_PLANNED, "kernel"),
        )),
    ],
)  # fmt: skip
def test_what_strict_mode_narrows_is_told_whole(kernel, expected):
    strict = Request(strict=True, ports=((29500, 29500),))
    found = compare_rules(rules("nftables"), strict, FirewallNode(nft=loaded(), kernel=kernel))
    assert found[-2:] == [Comparison("firewall", *one) for one in expected]
