# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is counted of a host's downloads, from recorded logs and counters."""

import pytest

from tests.lab import traffic
from tests.lab.traffic import Traffic, Transfer

# As apt-cacher-ng 3.7.4 writes it.
APT_LOG = """\
1795349835|I|151287|10.203.170.11|debrep/dists/bookworm/InRelease
1795349835|O|151293|10.203.170.11|debrep/dists/bookworm/InRelease
1795349841|O|8790703|10.203.170.11|debrep/dists/bookworm/main/binary-amd64/by-hash/SHA256/9e0b5aab
1795349850|I|18000|10.203.170.12|debrep/pool/main/d/dkms/dkms_3.0.10-8_all.deb
1795349850|O|18100|10.203.170.12|debrep/pool/main/d/dkms/dkms_3.0.10-8_all.deb
1795349851|O|48
"""
INDEX, PACKAGE = "debrep/dists/bookworm/InRelease", "debrep/pool/main/d/dkms/dkms_3.0.10-8_all.deb"
HASHED = "debrep/dists/bookworm/main/binary-amd64/by-hash/SHA256/9e0b5aab"


def transfers(client):
    return tuple(traffic.parse("apt", APT_LOG.splitlines(), client))


@pytest.mark.parametrize(
    ("client", "served", "fetched"),
    [("10.203.170.11", 151293 + 8790703, 151287), ("10.203.170.12", 18100, 18000), ("10.203.170.1", 0, 0)],
)
def test_bytes_of_a_host(client, served, fetched):
    found = Traffic(transfers(client), {traffic.OUTSIDE: 5}, frozenset())
    assert (found.served("apt"), found.fetched("apt")) == (served, fetched)
    assert (found.served("wheels"), found.fetched("wheels")) == (0, 0)
    assert found.outside == fetched + 5


@pytest.mark.parametrize(
    ("path", "fetched", "held", "expected"),
    [
        (PACKAGE, True, {PACKAGE}, [PACKAGE]),
        (HASHED, True, {HASHED}, [HASHED]),
        (PACKAGE, True, {HASHED}, []),  # it was not there
        (PACKAGE, False, {PACKAGE}, []),  # it came from the cache
        (INDEX, True, {INDEX}, []),  # it may have changed: who has it must ask
    ],
)
def test_what_is_fetched_again(path, fetched, held, expected):
    found = Traffic((Transfer("apt", fetched, 10, "10.203.170.11", path),), {}, frozenset(held))
    assert found.fetched_again() == expected


def test_what_a_cache_holds(tmp_path):
    for path in (PACKAGE, f"{PACKAGE}.head", INDEX):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    assert traffic.held(tmp_path) == {PACKAGE, INDEX}


# As iptables 1.8.9 prints it.
COUNTERS = """\
Chain lab-traffic (1 references)
    pkts      bytes target     prot opt in     out     source               destination
   10000 14000000 RETURN     0    --  *      *       10.203.176.2         0.0.0.0/0
     200    30000 RETURN     0    --  *      *       10.203.176.1         0.0.0.0/0
       0        0 RETURN     0    --  *      *       10.203.176.0/24      0.0.0.0/0
       3      180 RETURN     0    --  *      *       0.0.0.0/0            0.0.0.0/0
"""


def test_counted_packets():
    names = [name for name, _match in traffic.count_rules("10.203.176.2", "10.203.176.1", "10.203.176.0/24")]
    assert traffic.read_counters(COUNTERS, names) == {
        "cache": 14000000, "controller": 30000, "neighbours": 0, "outside": 180,
    }  # fmt: skip


def test_counters_of_another_chain_are_refused():
    with pytest.raises(ValueError, match="zip"):
        traffic.read_counters(COUNTERS, ["cache"])
