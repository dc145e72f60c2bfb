# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What users ask of role firewall, and what of it cannot be meant."""

import ipaddress

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.cluster.networks import of_version
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.firewall.request import (
    DEFAULTS,
    distinct,
    problems,
    request,
    with_services,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.sentences import describe
from hypothesis import given
from hypothesis import strategies as st

NODES = {
    "gpu-1": {"gpu_cluster_address": "10.0.0.1", "firewall_addresses": ["fd00::1"]},
    "gpu-2": {"ansible_facts": {"default_ipv4": {"address": "10.0.0.2"}}},
    "login": {"gpu_cluster_address": "10.0.0.9"},
}
GROUP = ["gpu-1", "gpu-2"]


def asked(name="gpu-1", **variables):
    return request(name, {**NODES, name: {**NODES[name], **variables}}, GROUP)


def test_peers_are_the_training_addresses_of_the_inventory():
    wanted = asked()
    assert wanted.peers == ("10.0.0.1", "10.0.0.2", "fd00::1")
    assert wanted.addresses == ("10.0.0.1", "fd00::1")
    assert wanted.unknown == ()


def test_a_node_that_left_the_group_is_no_peer():
    assert request("gpu-1", NODES, ["gpu-1"]).peers == ("10.0.0.1", "fd00::1")


def test_a_node_whose_address_nobody_knows_is_named():
    assert request("gpu-1", {**NODES, "gpu-2": {}}, GROUP).unknown == ("gpu-2",)


@pytest.mark.parametrize(
    ("variables", "attribute", "expected"),
    [
        ({"firewall_extra_sources": ["10.1.0.0/16", "10.1.2.3"]}, "peers", ("10.1.0.0/16", "10.0.0.1", "10.0.0.2", "fd00::1")),
        ({"firewall_extra_sources": "10.3.0.1, fd00::/64"}, "peers", ("10.0.0.1", "10.0.0.2", "10.3.0.1", "fd00::/64")),
        ({"firewall_addresses": ["FD00:0::0001"]}, "peers", ("10.0.0.1", "10.0.0.2", "fd00::1")),
        ({"firewall_open_ports": 9100}, "open_ports", ((9100, 9100),)),
        ({"firewall_open_ports": "9100,9400-9402,9401"}, "open_ports", ((9100, 9100), (9400, 9402))),
        ({}, "owner", "auto"),
        ({"firewall_owner": "ufw"}, "owner", "ufw"),
        ({"firewall_interfaces": "eth1, ib0"}, "interfaces", ("eth1", "ib0")),
        ({"firewall_port_range": "40000-40999"}, "port_range", (40000, 40999)),
        ({"firewall_ports": ["443", "29500-29510"]}, "ports", ((443, 443), (29500, 29510))),
        ({"firewall_strict": "yes"}, "strict", True),
        ({"firewall_strict": "no"}, "strict", False),
        ({"firewall_strict": True}, "reachable", ((29400, 29400), (29500, 29500), (50000, 50999))),
        ({"firewall_strict": True, "firewall_ports": []}, "reachable", ((50000, 50999),)),
        ({}, "reachable", ((1024, 65535),)),
    ],
)  # fmt: skip
def test_what_variables_mean(variables, attribute, expected):
    assert getattr(asked(**variables), attribute) == expected


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"firewall_addresses": ["10.0.0"]}, "firewall_addresses has '10.0.0', which is not an IP address of a host; correct it."),
        ({"firewall_addresses": ["10.0.0.0/24"]}, "'10.0.0.0/24', which is not an IP address of a host"),
        ({"firewall_addresses": ["::"]}, "'::', which is not an IP address"),
        ({"firewall_extra_sources": ["10.0.0.1/24"]}, "'10.0.0.1/24', which is not an IP address or a network such as 10.0.0.0/24"),
        ({"firewall_extra_sources": ["0.0.0.0/0"]}, "'0.0.0.0/0', which is not"),
        ({"firewall_extra_sources": ["::/0"]}, "'::/0', which is not"),
        ({"firewall_extra_sources": ["224.0.0.1"]}, "'224.0.0.1', which is not"),
        ({"firewall_extra_sources": ["127.0.0.1"]}, "'127.0.0.1', which is not"),
        ({"firewall_extra_sources": ["head-node"]}, "'head-node', which is not"),
        ({"firewall_open_ports": ["https"]}, "firewall_open_ports has 'https'; write a port from 1 to 65535 or a range"),
        ({"firewall_ports": [0]}, "firewall_ports has '0'; write a port"),
        ({"firewall_port_range": "50000"}, "firewall_port_range is '50000'; set it to a range of at least 256 ports above 1023"),
        ({"firewall_port_range": "1000-60000"}, "firewall_port_range is '1000-60000'"),
        ({"firewall_port_range": "50999-50000"}, "firewall_port_range is '50999-50000'"),
        ({"firewall_interfaces": ["eth0", 'eth0" drop']}, "firewall_interfaces has 'eth0\" drop', which is not the name of an interface"),
        ({"firewall_interfaces": ["a" * 16]}, "which is not the name of an interface"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant(variables, sentence):
    (found,) = problems(variables)
    assert sentence in describe(found)


def test_what_is_right_passes():
    assert not list(problems({}))
    assert not list(problems({**DEFAULTS, "firewall_interfaces": ["ens1f0np0", "bond0.100", "ib0"]}))
    assert not list(
        problems(
            {
                "firewall_addresses": ["10.0.0.1", "fd00::1"],
                "firewall_extra_sources": ["10.1.0.0/16", "10.2.0.1", "fd00::/64"],
            }
        )
    )


ADDRESSES = st.one_of(
    st.builds(lambda number, bits: str(ipaddress.ip_network((0x0A000000 + number, bits), strict=False)), st.integers(0, 99), st.integers(25, 32)),
    st.builds(lambda number, bits: str(ipaddress.ip_network((0xFD << 120 | number, bits), strict=False)), st.integers(0, 99), st.integers(120, 128)),
)  # fmt: skip


@given(st.lists(ADDRESSES, max_size=8))
def test_what_is_distinct_covers_the_same_and_does_not_overlap(addresses):
    def hosts(found):
        return {(net.version, int(host)) for net in map(ipaddress.ip_network, found) for host in net}

    found = distinct(addresses)
    assert hosts(found) == hosts(addresses)
    assert sum(ipaddress.ip_network(one).num_addresses for one in found) == len(hosts(found))
    assert distinct(reversed(addresses)) == found
    assert sorted(of_version(found, 4) + of_version(found, 6)) == sorted(found)


def test_a_node_outside_the_group_is_a_peer_of_its_own():
    wanted = request("login", NODES, GROUP)
    assert wanted.addresses == ("10.0.0.9",) and wanted.peers == ("10.0.0.1", "10.0.0.2", "10.0.0.9", "fd00::1")


def test_a_node_that_is_left_out_is_no_peer():
    assert request("gpu-1", {"gpu-1": NODES["gpu-1"]}, GROUP).unknown == ()


def test_further_addresses_alone_do_not_make_a_node_known():
    assert request("gpu-1", {**NODES, "gpu-2": {"firewall_addresses": ["10.7.0.1"]}}, GROUP).unknown == ("gpu-2",)


@pytest.mark.parametrize(
    ("services", "ports"),
    [
        ({}, ()),
        ({"monitoring_state": "present"}, ((9100, 9100), (9400, 9400))),
        ({"slurm_state": "present"}, ((6818, 6818), (61001, 64000))),
        ({"monitoring_state": "present", "slurm_state": "present"}, ((6818, 6818), (9100, 9100), (9400, 9400), (61001, 64000))),
        ({"monitoring_state": "absent", "slurm_state": "disabled"}, ()),
    ],
)  # fmt: skip
def test_services_bring_their_ports_and_who_asks_them(services, ports):
    known = {
        "gpu-1": {**NODES["gpu-1"], "firewall_ports": [], **services},
        "gpu-2": {"gpu_cluster_address": "10.0.0.2"},
        "ctl-1": {"gpu_cluster_address": "", "ansible_host": "10.9.0.1"},
        "ctl-2": {"ansible_host": "login.example.org"},
        "10.9.0.3": {},
    }
    groups = {"gpu_nodes": GROUP, "controllers": ["gpu-2", "ctl-1", "left-out", "ctl-2", "10.9.0.3"]}
    wanted = request("gpu-1", {**known, "gpu-2": {}}, GROUP)
    found = with_services(wanted, "gpu-1", known, groups)
    assert found.ports == ports
    assert with_services(wanted, "gpu-1", known, {}).ports == ports
    if not ports:
        assert found == wanted
    else:
        # A controller that is a node as well is known, or not, as a node.
        assert found.unknown == ("gpu-2", "ctl-2")
        assert found.peers == ("10.0.0.1", "10.9.0.1", "10.9.0.3", "fd00::1")
    with_login = with_services(
        wanted, "gpu-1", {**known, "login": {"ansible_host": "10.9.0.9"}}, {**groups, "login_nodes": ["login"]}
    )
    assert ("10.9.0.9" in with_login.peers) is (services.get("slurm_state") == "present")


@pytest.mark.parametrize(
    ("first", "last", "fits"),
    [(50000, 50255, True), (50000, 50254, False), (1024, 1279, True), (1023, 1300, False), (65280, 65535, True)],
)
def test_the_range_is_large_enough_and_unprivileged(first, last, fits):
    found = list(problems({"firewall_port_range": f"{first}-{last}"}))
    assert [(one.code, one.subject) for one in found] == ([] if fits else [("firewall_port_range", f"{first}-{last}")])


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("a" * 15, True), ("a" * 16, False), ("X", True), ("", False), (".", False), ("..", False), ("a.b", True),
        *((f"a{one}b", False) for one in '/:"\\ \t\n*'),
    ],
)  # fmt: skip
def test_names_of_interfaces(name, fits):
    found = list(problems({"firewall_interfaces": [name]}))
    assert [(one.code, one.subject) for one in found] == ([] if fits else [("firewall_no_interface_name", name)])


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"firewall_addresses": ["x"]}, "firewall_addresses has 'x', which is not an IP address of a host; correct it."),
        ({"firewall_extra_sources": ["x"]}, (
            "firewall_extra_sources has 'x', which is not an IP address or a network such as 10.0.0.0/24 of a host; correct it."
        )),
        ({"firewall_open_ports": ["x"]}, (
            "firewall_open_ports has 'x'; write a port from 1 to 65535 or a range such as '50000-50999'."
        )),
        ({"firewall_ports": ["x"]}, "firewall_ports has 'x'; write a port from 1 to 65535 or a range such as '50000-50999'."),
        ({"firewall_port_range": "x"}, (
            "firewall_port_range is 'x'; set it to a range of at least 256 ports above 1023, such as '50000-50999'."
        )),
        ({"firewall_interfaces": ["a b"]}, "firewall_interfaces has 'a b', which is not the name of an interface; correct it."),
    ],
)  # fmt: skip
def test_each_is_one_sentence(variables, sentence):
    assert [describe(one) for one in problems(variables)] == [sentence]
