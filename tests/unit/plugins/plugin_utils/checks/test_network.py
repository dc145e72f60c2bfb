# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks import network

GOOD = {"address": "10.0.0.2", "resolved": ["10.0.0.2"], "ssh": None}


@pytest.mark.parametrize(
    ("peers", "names", "ssh"),
    [
        ({"b": GOOD}, "passed", "passed"),
        ({"b": GOOD, "c": dict(GOOD, resolved=["127.0.1.1"])}, "failed", "passed"),
        ({"b": dict(GOOD, resolved=[])}, "failed", "passed"),
        ({"b": dict(GOOD, ssh="Permission denied (publickey).")}, "passed", "failed"),
        ({"b": {"address": "10.0.0.2", "resolved": ["10.0.0.2"], "reason": "there is no user"}}, "passed", "unknown"),
        ({}, "skipped", "skipped"),
        (None, "unknown", "unknown"),
    ],
)
def test_peers(peers, names, ssh):
    assert (network.names(peers)["status"], network.ssh(peers)["status"]) == (names, ssh)


def test_reasons_name_each_peer():
    refused = network.ssh({"b": dict(GOOD, ssh="Permission denied")})
    assert (refused["reason"], refused["fix"]) == ("b Permission denied", network.KEYS)
    elsewhere = network.names({"b": dict(GOOD, resolved=["127.0.1.1"])})
    assert (elsewhere["reason"], elsewhere["fix"]) == ("b resolves to 127.0.1.1 instead of 10.0.0.2", network.NAMES)


@pytest.mark.parametrize(
    ("container", "synchronised", "status"),
    [(False, True, "passed"), (False, False, "failed"), (False, None, "unknown"), (True, True, "skipped")],
)
def test_the_clock(container, synchronised, status):
    assert network.clock({"container": container}, {"clock_synchronised": synchronised})["status"] == status
