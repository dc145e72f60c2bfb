# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read back the files of a user and of root, and what the real client says of itself."""

import hashlib
import json
import os
import pwd
import shutil

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import probes, ssh_account
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.account_helper import account

NODES = [
    {"name": "a", "public_key": "ssh-ed25519 AAAA"},
    {"name": "b", "public_key": "ssh-ed25519 BBBB", "next_key": "ssh-ed25519 CCCC"},
]


@pytest.fixture
def user():
    with account() as found:
        yield found


def file_of(user, text, mode=0o600):
    (user.home / ".ssh").mkdir()
    path = user.home / ".ssh" / "authorized_keys"
    path.write_text(text)
    path.chmod(mode)
    shutil.chown(path, user.name)
    return path


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_the_file_of_a_user(user, mode):
    file_of(user, "text\n", mode)
    assert ssh_account.authorized_keys(user.name, str(user.home)) == {
        "state": "file", "mode": f"{mode:04o}", "owner": user.name, "sha256": hashlib.sha256(b"text\n").hexdigest(),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("make", "state"),
    [
        (lambda path: None, "absent"),
        (lambda path: path.symlink_to("/etc/passwd"), "link"),
        (lambda path: path.mkdir(), "directory"),
        (os.mkfifo, "special"),
    ],
)
def test_what_is_no_file(user, make, state):
    (user.home / ".ssh").mkdir()
    make(user.home / ".ssh" / "authorized_keys")
    found = ssh_account.authorized_keys(user.name, str(user.home))
    assert (found["state"], found["sha256"]) == (state, None)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("ssh-ed25519 ZZZZ admin\n", []),
        ('restrict,from="10.0.0.1" ssh-ed25519 AAAA a\n', ["a"]),
        ("ssh-ed25519 CCCC\nssh-ed25519 AAAA\n", ["a", "b"]),
    ],
)
def test_keys_that_root_takes(user, monkeypatch, text, names):
    file_of(user, text)
    entry = pwd.getpwnam(user.name)
    monkeypatch.setattr(pwd, "getpwnam", lambda _name: pwd.struct_passwd([*entry[:5], str(user.home), entry[6]]))
    assert ssh_account.root_keys(NODES) == names


@pytest.mark.skipif(not shutil.which("ssh"), reason="no ssh")
def test_what_the_client_says(tmp_path):
    for checking, agent, found in (("no", "yes", ("false", "yes")), ("yes", "no", ("true", "no"))):
        config = tmp_path / "config"
        config.write_text(f"StrictHostKeyChecking {checking}\nForwardAgent {agent}\n")
        _code, lines = probes.run(["ssh", "-F", str(config), "-G", "peer"])
        assert tuple(ssh_account.client(lines).values()) == found


def test_where_the_role_has_not_worked(tmp_path):
    assert ssh_account.read_account("anybody", "peer", None, record=str(tmp_path / "nodes.json")) is None


def test_all_of_it(user, tmp_path):
    record = tmp_path / "nodes.json"
    record.write_text(json.dumps(NODES))
    asked = []

    def run(arguments, user=None):
        asked.append((arguments, user))
        return 0, ["host peer", "stricthostkeychecking ask", "forwardagent no", "addkeystoagent"]

    found = ssh_account.read_account(user.name, "peer", run, str(record), root=user.name)
    assert asked == [(["ssh", "-G", "peer"], user.name)]
    assert found["nodes"] == NODES
    assert found["client"] == {"stricthostkeychecking": "ask", "forwardagent": "no"}
    gone = ssh_account.read_account("allreduce-nobody", "peer", run, str(record), root=user.name)
    assert (gone["authorized_keys"], gone["client"]) == (None, None)
