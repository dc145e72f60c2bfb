# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node says of its firewall, from recorded answers of its programs."""

import json

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import firewalld, ufw
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import firewall_facts
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.firewall_helper import HOST, UFW_RULES

LINKS = [
    {"ifname": "lo", "flags": ["LOOPBACK", "UP"], "addr_info": [{"family": "inet", "local": "127.0.0.1"}]},
    {
        "ifname": "eth0",
        "flags": ["BROADCAST", "UP"],
        "addr_info": [
            {"family": "inet", "local": "10.0.0.1", "prefixlen": 24},
            {"family": "inet6", "local": "fd00::1", "prefixlen": 64},
            {"family": "inet6", "local": "fd00::dead", "temporary": True},
            {},
        ],
    },
    {"ifname": "ib0", "flags": [], "addr_info": []},
    {},
]
# iproute2 6.1 and 6.15; the second is where systemd listens for sshd (Ubuntu 24.04).
LISTENERS = """\
LISTEN 0      128    0.0.0.0:22 0.0.0.0:* users:(("sshd",pid=102,fd=3))
LISTEN 0      128       [::]:2222    [::]:* users:(("sshd",pid=102,fd=4))
LISTEN 0      4096   127.0.0.53%lo:53 0.0.0.0:* users:(("systemd-resolve",pid=9,fd=14))
LISTEN 0      128    0.0.0.0:2022 0.0.0.0:* users:(("sshd-session",pid=7,fd=9))
LISTEN 0      128    0.0.0.0:9999 0.0.0.0:* users:(("notsshd",pid=8,fd=9))
"""
SOCKET = "ActiveState=active\nListen=[::]:22 (Stream)\nListen=0.0.0.0:2200 (Stream)\n\nActiveState=inactive\nListen=23 (Stream)\n"
ZONES = """\
docker
  target: ACCEPT
  interfaces: docker0
  rich rules:

public (active)
  target: default
  interfaces: eth0
  services: dhcpv6-client ssh
  rich rules:
\trule family="ipv4" source address="10.0.0.0/8" accept
"""


def test_addresses():
    assert firewall_facts.parse_addresses(json.dumps(LINKS)) == {"eth0": ["10.0.0.1", "fd00::1"], "ib0": []}
    assert firewall_facts.parse_addresses(None) == {}


def test_ports_of_ssh():
    assert firewall_facts.parse_listeners(LISTENERS) == [22, 2222, 2022]
    assert firewall_facts.parse_listeners(None) == []
    assert firewall_facts.parse_sockets(SOCKET) == [22, 2200]
    assert firewall_facts.parse_sockets("ActiveState=active\nListen=22 (Stream)\n") == [22]
    assert firewall_facts.parse_sockets(None) == []


def test_a_bare_host(tmp_path):
    answers = {"ip": json.dumps(LINKS), "ss": LISTENERS, "nft": '{"nftables": []}'}
    fact = firewall_facts.read_firewall(tree(tmp_path, HOST), lambda arguments: answers.get(arguments[0]))
    assert fact["nft"] == {"digest": None, "peers": None, "installed": True, "closed": []}
    assert not fact["firewalld"]["active"] and not fact["ufw"]["active"] and not fact["recorded"]
    assert fact["kernel"] == {"port_range": "32768 60999", "reserved": "8080", "reserved_before": "8080"}
    assert (fact["ssh_ports"], fact["selinux"]) == ([22, 2022, 2222], None)


def test_what_was_reserved_before_is_the_record_s(tmp_path):
    record = json.dumps({"format": 1, "values": {firewall_facts.RESERVED: "", firewall_facts.PORT_RANGE: "1 2"}})
    place = tree(tmp_path, {**HOST, firewall_facts.RECORD: record})
    fact = firewall_facts.read_firewall(place, lambda arguments: None)
    assert fact["recorded"] and fact["kernel"]["reserved_before"] == "" and fact["kernel"]["reserved"] == "8080"
    assert not fact["nft"]["installed"] and fact["interfaces"] == {}


def firewalld_of(
    running, permanent=ZONES, policies="allow-host-ipv6 allreduce", entries=("10.0.0.1\n10.0.0.2\n", "\n")
):
    answers = {
        ("--state",): "running\n",
        ("--version",): "1.3.3\n",
        ("--get-policies",): policies,
        ("--list-all-zones",): running,
        ("--permanent", "--list-all-zones"): permanent,
        ("--ipset=allreduce-peers4", "--get-entries"): entries[0],
        ("--ipset=allreduce-peers6", "--get-entries"): entries[1],
    }
    return firewalld.read(lambda arguments: answers[tuple(arguments[1:])])


def test_firewalld():
    expected = {"active": True, "version": "1.3.3", "unsaved": [], "peers": ["10.0.0.1", "10.0.0.2"], "policy": True}
    assert firewalld_of(ZONES) == expected
    assert firewalld_of(ZONES, policies="allow-host-ipv6")["peers"] is None


@pytest.mark.parametrize(
    ("old", "new", "unsaved"),
    [
        ("interfaces: eth0", "interfaces: eth0 vnet3", []),
        ("public (active)", "public", []),
        ("services: dhcpv6-client ssh", "services: dhcpv6-client", ["public"]),
        ("10.0.0.0/8", "10.0.0.0/9", ["public"]),
        ("target: ACCEPT", "target: DROP", ["docker"]),
    ],
)
def test_rules_of_firewalld_that_a_reload_would_lose(old, new, unsaved):
    assert old in ZONES
    assert firewalld_of(ZONES.replace(old, new))["unsaved"] == unsaved


LOADED = "-N ufw-before-input\n-A ufw-before-input -m mark --mark 0x1000/0x1000 -j ACCEPT\n"


@pytest.mark.parametrize(
    ("conf", "four", "six", "expected"),
    [
        ("# x\nENABLED=yes\nLOGLEVEL=low\n", LOADED, LOADED, {"active": True, "door": True}),
        ('ENABLED="yes"\n', LOADED, "-N ufw6-before-input\n", {"active": True, "door": False}),
        ("ENABLED=yes\n", None, None, {"active": False, "door": False}),
        ("ENABLED=no\n", LOADED, LOADED, {"active": False, "door": False}),
    ],
)
def test_ufw(tmp_path, conf, four, six, expected):
    answers = {"iptables": four, "ip6tables": six}
    assert ufw.read(tree(tmp_path, {"/etc/ufw/ufw.conf": conf}), lambda arguments: answers[arguments[0]]) == expected


def test_the_lines_in_ufw_s_files():
    path = "/etc/ufw/before.rules"
    text = ufw.with_block(UFW_RULES, path)
    lines = text.splitlines()
    assert (
        lines[lines.index("# End required lines") + 2] == "-A ufw-before-input -m mark --mark 0x1000/0x1000 -j ACCEPT"
    )
    assert ufw.with_block(text, path) == text
    assert ufw.without_block(text) == UFW_RULES
    assert ufw.without_block(UFW_RULES) == UFW_RULES
    with pytest.raises(ValueError, match="has no line '# End required lines'"):
        ufw.with_block("*filter\nCOMMIT\n", path)
