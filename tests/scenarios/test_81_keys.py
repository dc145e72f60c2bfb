# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys by which nodes reach each other: rotated, also from an interruption on; nodes that leave or were installed anew; removal."""

import pytest
from cluster import CHECKOUT, KEEP, Cluster

pytestmark = pytest.mark.lab

PLAYBOOK = str(CHECKOUT / "tests" / "scenarios" / "keys.yml")
KEYS = "~trainer/.ssh/authorized_keys"
PUBLIC = "cut -d' ' -f2 ~trainer/.ssh/id_ed25519.pub"


@pytest.fixture(scope="module")
def nodes():
    made = Cluster("keys", 2)
    made.before = {host: made.on(host, "cat /etc/hosts") for host in made.hosts}
    play(made)
    yield made
    if not KEEP:
        made.down()


def play(nodes, *options, status=0):
    run = nodes.play(PLAYBOOK, *options)
    assert (run.status == 0) is (status == 0), run.output[-6000:]
    return run


def unchanged(run):
    return {host: counts["changed"] for host, counts in run.recap.items()} == dict.fromkeys(run.recap, 0)


def public(nodes):
    return [nodes.on(host, PUBLIC).strip() for host in nodes.hosts]


def reaches(nodes, one, other):
    command = f"runuser -u trainer -- ssh -o BatchMode=yes {other} hostname"
    return nodes.on(one, command, check=False).strip() == other


def assert_all_reach_all(nodes):
    assert all(reaches(nodes, one, other) for one in nodes.hosts for other in nodes.hosts)


def test_keys_are_rotated_once(nodes):
    assert_all_reach_all(nodes)
    old = public(nodes)
    rotate = ("-e", "cluster_ssh_rotate=2026-11")
    refused = play(nodes, *rotate, "--limit", nodes.hosts[0], status=2)
    assert f"{nodes.hosts[1]} takes no part in this run" in refused.words
    assert public(nodes) == old
    run = play(nodes, *rotate)
    assert not unchanged(run)
    new = public(nodes)
    assert not set(old) & set(new)
    for host in nodes.hosts:
        taken = nodes.on(host, f"cat {KEYS}")
        assert all(key in taken for key in new) and not any(key in taken for key in old)
    assert_all_reach_all(nodes)
    assert unchanged(play(nodes, *rotate)) and unchanged(play(nodes, *rotate, "--limit", nodes.hosts[0]))
    assert public(nodes) == new


def test_an_interrupted_rotation_goes_on(nodes):
    """One node cannot be told the new keys: nobody changes to them, and all still reach each other."""
    old = public(nodes)
    rotate = ("-e", "cluster_ssh_rotate=2026-12")
    record = "/etc/allreduce/nodes.json"
    nodes.on(nodes.hosts[1], f"mv {record} {record}.kept; mkdir {record}")
    try:
        run = play(nodes, *rotate, status=2)
        assert "could not be given the new ones" in run.words
        assert public(nodes) == old
        assert_all_reach_all(nodes)
    finally:
        nodes.on(nodes.hosts[1], f"rmdir {record}; mv {record}.kept {record}")
    play(nodes, *rotate)
    assert not set(old) & set(public(nodes))
    assert_all_reach_all(nodes)
    assert unchanged(play(nodes, *rotate))


def test_a_node_with_another_host_key_is_refused_until_it_is_accepted(nodes):
    one, other = nodes.hosts
    key = "/etc/ssh/ssh_host_ed25519_key"
    nodes.on(
        other,
        f"cp -a {key} /root/key; cp -a {key}.pub /root/key.pub; rm {key}*; ssh-keygen -q -t ed25519 -N '' -f {key}",
    )
    try:
        known = nodes.on(one, "cat /etc/ssh/ssh_known_hosts")
        refused = play(nodes, "-e", "cluster_ssh_rotate=2026-12", status=2)
        fingerprint = nodes.on(other, f"ssh-keygen -lf {key}.pub").split()[1]
        assert f"{other} answers with the host key {fingerprint}" in refused.words
        assert nodes.on(one, "cat /etc/ssh/ssh_known_hosts") == known
        accepted = (
            f'{{"cluster_ssh_rotate": "2026-12", "cluster_ssh_accept_host_keys": {{"{other}": "{fingerprint}"}}}}'
        )
        play(nodes, "-e", accepted)
        assert nodes.on(other, f"cut -d' ' -f2 {key}.pub").strip() in nodes.on(one, "cat /etc/ssh/ssh_known_hosts")
        assert unchanged(play(nodes, "-e", "cluster_ssh_rotate=2026-12"))
    finally:
        nodes.on(other, f"mv /root/key {key}; mv /root/key.pub {key}.pub; ssh-keygen -lf {key}.pub")
        back = nodes.on(other, f"ssh-keygen -lf {key}.pub").split()[1]
        play(nodes, "-e", f'{{"cluster_ssh_accept_host_keys": {{"{other}": "{back}"}}}}')
    assert_all_reach_all(nodes)


def test_a_node_that_left_is_nowhere(nodes):
    stays, left = nodes.hosts
    files = f"cat {KEYS} /etc/ssh/ssh_known_hosts /etc/hosts /etc/allreduce/nodes.json"
    assert left in nodes.on(stays, files)
    play(nodes, "--limit", stays, "-e", f'{{"cluster_ssh_nodes": ["{stays}"]}}')
    assert left not in nodes.on(stays, files)
    assert not reaches(nodes, left, stays)
    play(nodes)
    assert_all_reach_all(nodes)


def test_everything_is_taken_back(nodes):
    play(nodes, "-e", "cluster_ssh_state=absent", "--check", "--diff")
    assert_all_reach_all(nodes)
    play(nodes, "-e", "cluster_ssh_state=absent")
    for host in nodes.hosts:
        assert nodes.on(host, "ls -A ~trainer/.ssh").strip() == ""
        assert nodes.on(host, "cat /etc/ssh/ssh_known_hosts; ls /etc/allreduce/nodes.json || true").strip() == ""
        assert nodes.on(host, "cat /etc/hosts") == nodes.before[host]
    assert unchanged(play(nodes, "-e", "cluster_ssh_state=absent"))
    play(nodes, "-e", '{"cluster_ssh_state": "absent", "cluster_ssh_remove_user": true}')
    assert all(
        nodes.on(host, "id trainer 2>&1; ls -d /home/trainer 2>&1", check=False).count("o such") == 2
        for host in nodes.hosts
    )
    assert unchanged(play(nodes, "-e", '{"cluster_ssh_state": "absent", "cluster_ssh_remove_user": true}'))
