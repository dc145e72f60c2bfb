# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role cluster_ssh in check mode on this machine: what it asks of a node, and what it refuses."""

import json
import pwd

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import accounts

from tests.support.local_play import run_roles

USER = "allreduce-nobody"
NORMAL = ["ssh_keys", "config_files"]
NEW = ["ssh_keys", "group", "user", *NORMAL]
ROTATION = ["config_files", "ssh_keys"]


def play(place, **variables):
    facts = {
        "gpu_stack": {"os": {"family": "debian"}},
        "gpu_node_state": {"packages": {}},
        "default_ipv4": {"address": "10.0.0.1"},
        "nodename": "node",
        "ssh_host_key_ed25519_public": "AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    }
    variables = {"cluster_ssh_user": USER, **variables}
    return run_roles(place, ["cluster_ssh"], facts, "--check", "--diff", "-e", json.dumps(variables))


def modules(run):
    return [row["module"].rpartition(".")[2] for row in run.executions if row["role"]]


@pytest.mark.long
@pytest.mark.parametrize("rotate", ["", "2026-11", 7])
def test_a_new_user(tmp_path, rotate):
    """Whoever has no key yet begins with one of the rotation."""
    run = play(tmp_path, cluster_ssh_rotate=rotate)
    assert run.status == 0, run.output
    assert modules(run) == NEW
    assert "+++ after: /etc/allreduce/nodes.json" in run.output


def users():
    """Users of this machine that the role would leave as they are."""
    for user in pwd.getpwall():
        names = {"group": user.pw_name, "home": user.pw_dir, "shell": "/bin/bash", "uid": None}
        if user.pw_uid and accounts.fits(user.pw_name, names):
            yield user


def test_a_user_that_is_there_costs_two_executions(tmp_path):
    user = next(users(), None)
    if user is None:
        pytest.skip("this machine has no user but root that logs in with bash")
    run = play(tmp_path, cluster_ssh_user=user.pw_name, cluster_ssh_home=user.pw_dir)
    assert run.status == 0, run.output
    assert modules(run) == NORMAL


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"cluster_ssh_user": "root"}, "cluster_ssh_user must be an unprivileged user, not root."),
        ({"cluster_ssh_nodes": ["other"]}, "node is not in cluster_ssh_nodes; add it there"),
        ({"cluster_ssh_rotate": "two words"}, "cluster_ssh_rotate must be at most 64 letters, digits"),
        ({"cluster_ssh_rotate": "line\n"}, "cluster_ssh_rotate must be at most 64 letters, digits"),
    ],
)
def test_what_is_refused_before_anything_is_looked_at(tmp_path, variables, words):
    run = play(tmp_path, **variables)
    assert run.status != 0 and words in run.output
    assert modules(run) == []


def test_nodes_that_cannot_be_connected_are_refused_with_the_reason(tmp_path):
    run = play(tmp_path, gpu_cluster_address="not an address")
    assert run.status != 0
    assert "gpu_cluster_address of node is 'not an address'; set it to an IP address." in run.output


@pytest.mark.long
@pytest.mark.parametrize("user", [False, True])
def test_taken_back(tmp_path, user):
    run = play(tmp_path, cluster_ssh_state="absent", cluster_ssh_remove_user=user)
    assert run.status == 0, run.output
    assert modules(run) == ["ssh_keys", "config_files", "blockinfile", "blockinfile", "replace"] + ["user"] * user
    assert run.output.count("changed: [node]") == 0
