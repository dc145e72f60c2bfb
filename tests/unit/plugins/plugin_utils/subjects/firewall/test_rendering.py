# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules as nftables and firewalld read them."""

import re
import xml.etree.ElementTree as ET

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import nft
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.firewall import firewalld, nftables
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.firewall.decide import Rules

RULES = Rules(
    owner="nftables",
    interfaces=("eth1", "ib0"),
    addresses=("10.0.0.1", "fd00::1"),
    peers=("10.0.0.1", "10.0.0.2", "fd00::/64"),
    ports=((29500, 29500), (50000, 50999)),
    closed=((1024, 9099), (9101, 65535)),
)
TABLE = """\
# Written by role allreduce.gpu.firewall; changes made here are lost.
add table inet allreduce
delete table inet allreduce
table inet allreduce {
\tset peers4 {
\t\ttype ipv4_addr
\t\telements = { 10.0.0.1, 10.0.0.2 }
\t}
\tset peers6 {
\t\ttype ipv6_addr
\t\tflags interval
\t\telements = { fd00::/64 }
\t}
\tchain input {
\t\ttype filter hook input priority -145; policy accept;
\t\tiifname "lo" accept comment "allreduce.gpu DIGEST"
\t\tiifname { "eth1", "ib0" } goto training
\t\tip daddr { 10.0.0.1 } goto training
\t\tip6 daddr { fd00::1 } goto training
\t}
\tchain training {
\t\tmeta l4proto { tcp, udp } th dport { 29500, 50000-50999 } ip saddr @peers4 meta mark set meta mark | 0x1000 accept
\t\tmeta l4proto { tcp, udp } th dport { 29500, 50000-50999 } ip6 saddr @peers6 meta mark set meta mark | 0x1000 accept
\t\tct state established,related accept
\t\ttcp dport { 1024-9099, 9101-65535 } reject with tcp reset
\t\tudp dport { 1024-9099, 9101-65535 } reject with icmpx type admin-prohibited
\t}
}
"""


def rules(**more):
    return Rules(**{**RULES.__dict__, **more})


def thousand():
    return tuple(f"10.0.{number // 256}.{number % 256}" for number in range(1000))


def test_the_table():
    text = nftables.table(RULES)
    assert re.sub("allreduce.gpu [0-9a-f]{16}", "allreduce.gpu DIGEST", text) == TABLE
    assert re.fullmatch("[0-9a-f]{16}", nft.digest_of(text))


@pytest.mark.parametrize("more", [{"peers": ("10.0.0.1",)}, {"interfaces": ("eth1",)}, {"closed": ((1024, 65535),)}])
def test_the_digest_tells_rules_apart(more):
    assert nft.digest_of(nftables.table(rules(**more))) != nft.digest_of(nftables.table(RULES))
    assert nftables.table(rules(**more)) == nftables.table(rules(**more))


def test_what_is_empty_has_no_rule():
    text = nftables.table(rules(peers=(), ports=(), closed=(), addresses=("fd00::1",)))
    assert "elements" not in text and "@peers" not in text and "reject" not in text and "ip daddr" not in text


def test_the_number_of_rules_does_not_depend_on_that_of_nodes():
    assert len(nftables.table(rules(peers=thousand())).splitlines()) == len(
        nftables.table(rules(peers=thousand()[:9])).splitlines()
    )
    few, many = (firewalld.files(rules(peers=thousand()[:count])) for count in (9, 1000))
    assert few["/etc/firewalld/policies/allreduce.xml"] == many["/etc/firewalld/policies/allreduce.xml"]
    assert many["/etc/firewalld/ipsets/allreduce-peers4.xml"].count("<entry>") == 1000


def test_the_policy():
    root = ET.fromstring(firewalld.policy(RULES).encode())  # noqa: S314 (our own)
    assert root.attrib == {"priority": "-145", "target": "CONTINUE"}
    assert [root.find(one).get("name") for one in ("ingress-zone", "egress-zone")] == ["ANY", "HOST"]
    found = set()
    for rule in root.iter("rule"):
        source, port = rule.find("source"), rule.find("port")
        accepts = rule.find("accept") is not None
        assert accepts == (source is not None) and accepts != (rule.find("reject") is not None)
        # What is accepted has to come before what is refused.
        assert rule.get("priority") == ("-2" if accepts else "-1")
        if accepts:
            assert source.get("ipset") == {"ipv4": "allreduce-peers4", "ipv6": "allreduce-peers6"}[rule.get("family")]
        found.add((accepts, rule.find("destination").get("address"), port.get("protocol"), port.get("port")))
    assert found == {
        (accepts, address, protocol, port)
        for address in ("10.0.0.1", "fd00::1")
        for protocol in ("tcp", "udp")
        for accepts, ports in ((True, ("29500", "50000-50999")), (False, ("1024-9099", "9101-65535")))
        for port in ports
    }


@pytest.mark.parametrize(
    ("version", "family", "entries"), [(4, "inet", ["10.0.0.1", "10.0.0.2"]), (6, "inet6", ["fd00::/64"])]
)
def test_the_sets(version, family, entries):
    root = ET.fromstring(firewalld.peer_set(RULES, version).encode())  # noqa: S314 (our own)
    assert root.get("type") == "hash:net" and root.find("option").attrib == {"name": "family", "value": family}
    assert [one.text for one in root.iter("entry")] == entries


def test_a_peer_set_is_told_whole():
    assert firewalld.peer_set(rules(peers=("10.0.0.1", "fd00::/64", "fd01::1")), 6) == (
        '<?xml version="1.0" encoding="utf-8"?>\n<ipset type="hash:net">\n'
        "  <description>Written by role allreduce.gpu.firewall; changes made here are lost.</description>\n"
        '  <option name="family" value="inet6"/>\n  <entry>fd00::/64</entry>\n  <entry>fd01::1</entry>\n</ipset>\n'
    )


def test_a_policy_is_told_whole():
    def each(priority, source, port, verdict):
        for protocol in ("tcp", "udp"):
            yield (
                f'  <rule family="ipv4" priority="{priority}">{source}<destination address="10.0.0.1"/>'
                f'<port port="{port}" protocol="{protocol}"/><{verdict}/></rule>\n'
            )

    one = rules(addresses=("10.0.0.1",), ports=((29500, 29500),), closed=((1024, 65535),))
    assert firewalld.policy(one) == (
        '<?xml version="1.0" encoding="utf-8"?>\n<policy priority="-145" target="CONTINUE">\n  <short>allreduce</short>\n'
        "  <description>Written by role allreduce.gpu.firewall; changes made here are lost.</description>\n"
        '  <ingress-zone name="ANY"/>\n  <egress-zone name="HOST"/>\n'
        + "".join(each(-2, '<source ipset="allreduce-peers4"/>', "29500", "accept"))
        + "".join(each(-1, "", "1024-65535", "reject"))
        + "</policy>\n"
    )
