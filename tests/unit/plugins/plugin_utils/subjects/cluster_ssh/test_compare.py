# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was read back of the training user's SSH: each way in which it can be something else."""

import hashlib

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.drift import checks
from ansible_collections.allreduce.gpu.plugins.plugin_utils.cluster.ssh import authorized_keys
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.cluster_ssh.compare import compare_ssh

NODES = [{"name": "a", "address": "10.0.0.1", "sources": [], "public_key": "ssh-ed25519 AAAA"}]
EXTRA = ["ssh-ed25519 BBBB mia"]
FILE = {
    "state": "file", "mode": "0600", "owner": "t",
    "sha256": hashlib.sha256(authorized_keys(NODES, EXTRA).encode()).hexdigest(),
}  # fmt: skip
CLIENT = {"stricthostkeychecking": "ask", "forwardagent": "no"}
GOOD = {"nodes": NODES, "authorized_keys": FILE, "root_keys": [], "client": CLIENT}


def judged(account, extra=None):
    return {one["name"]: one for one in checks(compare_ssh(account, "t", EXTRA if extra is None else extra))}


def test_what_is_as_recorded_passes():
    found = judged(GOOD)
    assert {name: one["status"] for name, one in found.items()} == dict.fromkeys(
        ["ssh_keys", "ssh_root", "ssh_client"], "passed"
    )


@pytest.mark.parametrize("checking", ["true", "yes", "ask", "accept-new"])
def test_ways_of_checking_host_keys(checking):
    account = {**GOOD, "client": {**CLIENT, "stricthostkeychecking": checking}}
    assert judged(account)["ssh_client"]["status"] == "passed"


@pytest.mark.parametrize(
    ("change", "name", "status", "words"),
    [
        ({"authorized_keys": {**FILE, "mode": "0644"}}, "ssh_keys", "failed", "0644 t instead of 0600 t"),
        ({"authorized_keys": {**FILE, "owner": "root"}}, "ssh_keys", "failed", "0600 root instead of 0600 t"),
        ({"authorized_keys": {**FILE, "sha256": "0" * 64}}, "ssh_keys", "failed", "authorized_keys is edited instead of as written"),
        ({"authorized_keys": {"state": "link"}}, "ssh_keys", "failed", "authorized_keys is link instead of a file of t's"),
        ({"authorized_keys": {"state": "absent"}}, "ssh_keys", "failed", "authorized_keys is missing"),
        ({"authorized_keys": None}, "ssh_keys", "failed", "authorized_keys is missing"),
        ({"root_keys": ["a", "b"]}, "ssh_root", "failed", "authorized_keys of root (takes a, b) is in the way of the plan"),
        ({"client": {**CLIENT, "stricthostkeychecking": "false"}}, "ssh_client", "failed", "StrictHostKeyChecking is false instead of yes"),
        ({"client": {**CLIENT, "stricthostkeychecking": "off"}}, "ssh_client", "failed", "StrictHostKeyChecking is off"),
        ({"client": {**CLIENT, "forwardagent": "yes"}}, "ssh_client", "failed", "ForwardAgent is yes instead of no"),
        ({"client": None}, "ssh_client", "unknown", "StrictHostKeyChecking could not be measured"),
    ],
)  # fmt: skip
def test_what_is_something_else(change, name, status, words):
    found = judged({**GOOD, **change})
    assert [one for one in found if found[one]["status"] != "passed"] == [name]
    assert found[name]["status"] == status and words in found[name]["reason"] and found[name]["fix"]


def test_lines_of_the_site_that_are_not_declared_any_more():
    assert judged(GOOD, [])["ssh_keys"]["status"] == "failed"


def test_where_the_role_has_not_worked_there_is_nothing_to_judge():
    assert judged(None) == {}
