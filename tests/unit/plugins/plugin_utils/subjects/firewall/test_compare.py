# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules that run beside those that were decided."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host.nft import digest_of
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.drift import checks
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
    assert words in check["reason"] and check["reason"].endswith("run site again")


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
