# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses and networks as sets."""

import ipaddress

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.cluster.networks import of_version, outermost, text
from hypothesis import given
from hypothesis import strategies as st

ADDRESSES = st.one_of(
    st.builds(lambda number, bits: f"{ipaddress.ip_address(0x0A000000 + number)}/{bits}", st.integers(0, 99), st.integers(25, 32)),
    st.builds(lambda number, bits: f"{ipaddress.ip_address(0xFD << 120 | number)}/{bits}", st.integers(0, 99), st.integers(120, 128)),
)  # fmt: skip


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        ([], []),
        (["10.0.0.2", "10.0.0.1", "10.0.0.2"], ["10.0.0.1", "10.0.0.2"]),
        (["10.1.2.3", "10.1.0.0/16", "10.0.0.1"], ["10.0.0.1", "10.1.0.0/16"]),
        (["fd00::1", "FD00:0::0001", "10.0.0.1"], ["10.0.0.1", "fd00::1"]),
        (["fd00::/64", "fd00::7", "10.0.0.0/8"], ["10.0.0.0/8", "fd00::/64"]),
        (["::a00:1", "10.0.0.1"], ["10.0.0.1", "::a00:1"]),  # the same number
        (["10.0.0.9/24"], ["10.0.0.0/24"]),
    ],
)
def test_what_another_one_contains_is_left_out(addresses, expected):
    assert [text(one) for one in outermost(addresses)] == expected


@given(st.lists(ADDRESSES, max_size=8))
def test_the_same_addresses_remain_each_once(addresses):
    def hosts(found):
        return {(net.version, int(host)) for net in found for host in net}

    found = outermost(addresses)
    assert hosts(found) == hosts(ipaddress.ip_network(one, strict=False) for one in addresses)
    assert sum(one.num_addresses for one in found) == len(hosts(found))
    assert outermost(reversed(addresses)) == found


def test_versions():
    both = ["10.0.0.1", "fd00::/64"]
    assert (of_version(both, 4), of_version(both, 6)) == (["10.0.0.1"], ["fd00::/64"])
