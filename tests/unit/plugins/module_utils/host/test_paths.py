# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real packets between network namespaces; what ping prints, as recorded."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import paths
from ansible_collections.allreduce.gpu.tests.support import namespaces

A, B = "10.9.0.1", "10.9.0.2"


@pytest.fixture
def net():
    with namespaces.network("ping") as made:
        yield made


def probe(net, tmp_path, node="a", address=A, peer=B):
    """What module node_probe of one namespace says of another."""
    network = {"name": "localhost", "address": address, "peers": ["b"]}
    options = {"nvidia_smi": False, "user": "no-such-user", "peers": {"b": peer}, "network": network}
    return net.module(node, "node_probe", tmp_path, **options)["node_probe"]["network"]


def test_packets_of_full_size_pass(net, tmp_path):
    net.wire("a", f"eth0={A}", "b", f"eth0={B}", mtu=9000)
    found = probe(net, tmp_path)
    assert (found["link"]["interface"], found["link"]["mtu"], found["link"]["shared"]) == ("eth0", 9000, {})
    way = found["paths"]["b"]
    assert 0 < way.pop("rtt") < 1000
    assert way == {"size": 9000, "full": True, "reached": True, "path_mtu": 9000, "source": A}


def test_a_narrow_router_in_the_middle_says_how_much_passes(net, tmp_path):
    net.wire("a", f"eth0={A}", "router", "near=10.9.0.254", mtu=1500)
    net.wire("router", "far=10.9.1.254", "b", "eth0=10.9.1.2", mtu=1400)
    net.on("router", "sysctl", "-qw", "net.ipv4.ip_forward=1")
    for node, gateway in (("a", "10.9.0.254"), ("b", "10.9.1.254")):
        net.on(node, "ip", "route", "add", "default", "via", gateway)
    way = probe(net, tmp_path, peer="10.9.1.2")["paths"]["b"]
    assert (way["size"], way["full"], way["reached"], way["path_mtu"]) == (1500, False, True, 1400)
    back = probe(net, tmp_path, "b", "10.9.1.2", A)["paths"]["b"]
    assert (back["size"], back["full"], back["path_mtu"]) == (1400, True, 1400)


def test_a_peer_with_smaller_packets_drops_larger_ones_without_a_word(net, tmp_path):
    net.wire("a", f"eth0={A}", "b", f"eth0={B}")
    net.on("b", "ip", "link", "set", "eth0", "mtu", "1400")
    way = probe(net, tmp_path)["paths"]["b"]
    assert (way["full"], way["reached"], way["path_mtu"]) == (False, True, 1500)
    assert probe(net, tmp_path, "b", B, A)["paths"]["b"]["full"] is True


def test_a_peer_that_does_not_answer(net, tmp_path):
    net.wire("a", f"eth0={A}", "b", f"eth0={B}")
    net.on("b", "sysctl", "-qw", "net.ipv4.icmp_echo_ignore_all=1")
    way = probe(net, tmp_path)["paths"]["b"]
    assert (way["full"], way["reached"], way["rtt"]) == (False, False, None)


def test_a_peer_that_another_address_leads_to(net, tmp_path):
    net.wire("a", f"eth0={A}", "b", f"eth0={B}")
    net.wire("a", "eth1=10.9.1.1", "b", "eth1=10.9.1.2")
    assert probe(net, tmp_path, peer="10.9.1.2")["paths"]["b"]["source"] == "10.9.1.1"


def test_two_interfaces_in_one_subnet(net, tmp_path):
    net.wire("a", f"eth0={A}", "b", f"eth0={B}")
    net.wire("a", "eth1=10.9.0.11", "b", "eth1=10.9.0.12")
    net.on("a", "sysctl", "-qw", "net.ipv4.conf.eth1.arp_ignore=1", "net.ipv4.conf.all.rp_filter=0")
    shared = probe(net, tmp_path)["link"]["shared"]
    assert sorted(shared) == ["eth0", "eth1"]
    assert (shared["eth0"]["arp_ignore"], shared["eth1"]["arp_ignore"]) == (0, 1)


def test_no_interface_has_the_address(net, tmp_path):
    net.wire("a", f"eth0={A}", "b", f"eth0={B}")
    found = probe(net, tmp_path, address="10.9.0.77")
    assert found["link"]["interface"] is None and found["paths"] is None
    assert found["own_name"]


def test_without_ping_nothing_is_known(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert paths.try_paths(A, 1500, {"b": B}) is None


@pytest.mark.parametrize(
    ("line", "rtt"),
    [
        ("rtt min/avg/max/mdev = 0.258/0.301/0.344/0.012 ms", 0.258),
        ("rtt min/avg/max/mdev = 0.258/0.301/0.344/0.012 ms, ipg/ewma 0.2/0.3 ms", 0.258),
        ("round-trip min/avg/max = 0.071/0.080/0.090 ms", 0.071),  # BusyBox
        ("3 packets transmitted, 0 received, 100% packet loss, time 403ms", None),
    ],
)
def test_round_trips_are_read(line, rtt):
    assert paths.parse_rtt(["PING 10.9.0.2 (10.9.0.2) 56(84) bytes of data.", line]) == rtt


def test_nothing_was_asked():
    assert paths.try_network(None, {}) is None
