# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host without RDMA adapters says so and is left alone. Adapters are on machines: test_93."""

import json

import pytest
from cluster import KEEP, Cluster

pytestmark = pytest.mark.lab

PLAYBOOK = "tests/scenarios/rdma.yml"
WANTED = {
    "rdma_state": "present",
    "rdma_names": "pci",
    "rdma_subnet_manager": True,
    "rdma_roce": {"dscp": 26, "priority": 3, "cnp": {"dscp": 48, "priority": 6}},
    "rdma_ipoib": {"ib0": {"mode": "connected", "mtu": 65520}},
}
STATE = (
    "find /etc /opt /var/lib/allreduce -xdev -not -path '/etc/ssh/*' -printf '%p %y %m %l\\n' 2>/dev/null | LC_ALL=C sort;"
    " dpkg-query -W"
)


@pytest.fixture(scope="module")
def host():
    made = Cluster("rdma", 1, "--distribution", "debian12")
    yield made
    if not KEEP:
        made.down()


def play(host, **variables):
    run = host.play(PLAYBOOK, "-e", json.dumps(variables))
    assert run.status == 0, run.output[-6000:]
    return run, run.recap[host.hosts[0]]["changed"]


def test_a_host_without_adapters_says_so_and_is_left_alone(host):
    name = host.hosts[0]
    assert host.on(name, "ls /sys/class/infiniband 2>/dev/null; true").strip() == ""
    play(host)  # what a first connection leaves is not the role's
    before = host.on(name, STATE)
    run, changes = play(host, **WANTED)
    assert changes == 0 and f"{name} has no RDMA adapter and is left alone." in run.words
    assert host.on(name, STATE) == before


def test_what_cannot_be_had_is_refused_before_anything_changes(host):
    before = host.on(host.hosts[0], STATE)
    run = host.play(PLAYBOOK, "-e", json.dumps({**WANTED, "rdma_stack": "doca"}))
    assert run.status != 0 and "rdma_stack is doca, whose repository's key cannot be verified" in run.words
    assert host.on(host.hosts[0], STATE) == before
