# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names and keys by which nodes find each other: hosts without a name of their own, the real cloud-init, and FIPS."""

import pytest
from cluster import KEEP, Cluster

pytestmark = pytest.mark.lab

# The kernel cannot be switched to FIPS mode here. This is what Enterprise Linux's policy FIPS has sshd and ssh accept, but for the
# lab's own key and what it knows the host by.
POLICY = """
set -eu
mkdir -p /etc/crypto-policies/state; echo FIPS > /etc/crypto-policies/state/current
kinds=ecdsa-sha2-nistp256,rsa-sha2-512
printf 'Match User trainer\n PubkeyAcceptedAlgorithms %s\n' $kinds > /etc/ssh/sshd_config.d/00-fips.conf
printf 'PubkeyAcceptedAlgorithms %s\nHostKeyAlgorithms %s\n' $kinds $kinds > /etc/ssh/ssh_config.d/00-fips.conf
systemctl restart ssh
"""
# The address of a host is the lab's affair, and so are the keys it is known by: this is a later boot, not the first one.
CLOUD_CONFIG = """manage_etc_hosts: true
ssh_deletekeys: false
datasource_list: [None]
network: {config: disabled}"""


@pytest.fixture(scope="module")
def nodes():
    made = Cluster("names", 2)
    yield made
    if not KEEP:
        made.down()


def reaches(nodes, one, other, option=""):
    """Whether the user of one node runs a command on another, without a question."""
    command = f"runuser -u trainer -- ssh -o BatchMode=yes {option} {other} hostname"
    return nodes.on(one, command, check=False).strip() == other


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("localhost", "The host name of names-2 is 'localhost', the default of a host without a name"),
        ("names-1", "names-1, names-2 have the same host name names-1"),
    ],
)
def test_a_node_without_a_name_of_its_own_is_refused_before_anything_is_touched(nodes, name, words):
    before = nodes.fingerprints()
    nodes.on("names-2", f"hostname {name}")
    try:
        run = nodes.play("playbooks/site.yml")
    finally:
        nodes.on("names-2", "hostname names-2")
    assert run.status != 0
    assert words in run.words, run.output[-4000:]
    assert nodes.fingerprints() == before


def test_cloud_init_keeps_the_names(nodes):
    """manage_etc_hosts: true, where it has precedence over our file as user data has."""
    for node in nodes.hosts:
        nodes.on(node, "apt-get -q update && apt-get -q -y install cloud-init && touch /etc/cloud/cloud-init.disabled")
        nodes.on(node, f"echo '{CLOUD_CONFIG}' > /etc/cloud/cloud.cfg.d/zz-user.cfg")
    run = nodes.play("playbooks/site.yml", "--tags", "cluster_ssh")
    assert run.status == 0, run.output[-6000:]
    for node, other in (nodes.hosts, nodes.hosts[::-1]):
        nodes.on(
            node,
            "cloud-init init --local; cloud-init init; cloud-init single --name update_etc_hosts --frequency always",
        )
        hosts = nodes.on(node, "cat /etc/hosts")
        assert "Your system has configured 'manage_etc_hosts' as True" in hosts
        assert nodes.on(node, f"getent ahostsv4 {other}").startswith("10."), hosts
        assert "127." not in nodes.on(node, f"getent ahosts {node}"), hosts
        assert reaches(nodes, node, other)
    again = nodes.play("playbooks/site.yml", "--tags", "cluster_ssh")
    assert {host: counts["changed"] for host, counts in again.recap.items()} == dict.fromkeys(again.recap, 0)


def test_a_node_in_fips_mode_joins_the_cluster(nodes):
    one, other = nodes.hosts
    nodes.on(one, POLICY)
    assert not reaches(nodes, other, one)
    run = nodes.play("playbooks/site.yml", "--tags", "cluster_ssh")
    assert run.status == 0, run.output[-6000:]
    assert reaches(nodes, one, other)
    assert reaches(nodes, other, one)
    assert "ed25519" not in nodes.on(one, "cat ~trainer/.ssh/authorized_keys /etc/ssh/ssh_known_hosts")
