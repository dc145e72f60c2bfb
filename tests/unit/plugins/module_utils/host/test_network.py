# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import json

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import network
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree

# As iproute2 6.1 prints it, less what is not read; older releases print {} for an interface that does not match.
BOND = [
    {},
    {"ifname": "lo", "mtu": 65536, "addr_info": [{"family": "inet", "local": "127.0.0.1", "prefixlen": 8}]},
    {"ifname": "ens1", "mtu": 1500, "addr_info": []},
    {"ifname": "ens2", "mtu": 9000, "addr_info": []},
    {
        "ifname": "bond0", "mtu": 9000,
        "addr_info": [
            {"family": "inet", "local": "10.0.0.1", "prefixlen": 24},
            {"family": "inet6", "local": "fd00::1", "prefixlen": 64},
        ],
    },
    {"ifname": "ens3", "mtu": 1500, "addr_info": [{"family": "inet", "local": "10.0.1.9", "prefixlen": 24}]},
]  # fmt: skip


def tree(root, **files):
    for path, text in files.items():
        place = root / path.replace("__", "/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return FileTree(str(root))


def test_a_bond_and_what_is_below_it(tmp_path):
    machine = tree(tmp_path, sys__class__net__bond0__speed="50000\n", sys__class__net__ens1__mtu="1500\n")
    (tmp_path / "sys/class/net/bond0/lower_ens1").symlink_to("../ens1")
    assert network.read_link(machine, json.dumps(BOND), "10.0.0.1") == {
        "interface": "bond0", "mtu": 9000, "speed": 50000, "lower": {"ens1": 1500}, "shared": {},
    }  # fmt: skip


@pytest.mark.parametrize("listed", [None, "", "not JSON", json.dumps(BOND[:2])])
def test_an_address_that_nothing_has(tmp_path, listed):
    assert network.read_link(tree(tmp_path), listed, "10.0.0.1")["interface"] is None


@pytest.mark.parametrize(
    ("address", "prefix", "shared"),
    [("10.0.0.2", 24, True), ("10.0.1.2", 24, False), ("fd00::2", 64, True), ("fd00:0:0:1::2", 64, False)],
)
@pytest.mark.parametrize("own", ["10.0.0.1", "fd00::1"])
def test_interfaces_that_share_the_subnet(tmp_path, own, address, prefix, shared):
    other = {"ifname": "ens4", "mtu": 9000, "addr_info": [{"local": address, "prefixlen": prefix}]}
    expected = shared and (":" in own) == (":" in address)
    assert bool(network.read_link(tree(tmp_path), json.dumps([*BOND, other]), own)["shared"]) is expected


def test_of_arp_settings_the_higher_value_counts(tmp_path):
    conf = "proc__sys__net__ipv4__conf__"
    machine = tree(
        tmp_path,
        **{f"{conf}all__arp_ignore": "1", f"{conf}ens4__arp_ignore": "0", f"{conf}all__rp_filter": "0",
           f"{conf}ens4__rp_filter": "2"},
    )  # fmt: skip
    assert network.arp_settings(machine, "ens4") == {"arp_announce": None, "arp_ignore": 1, "rp_filter": 2}


def test_a_speed_that_the_kernel_does_not_know(tmp_path):
    machine = tree(tmp_path, sys__class__net__bond0__speed="-1\n")
    assert network.read_link(machine, json.dumps(BOND), "10.0.0.1")["speed"] is None
