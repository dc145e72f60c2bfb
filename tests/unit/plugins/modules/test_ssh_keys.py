# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module as Ansible runs it, with the real ssh-keygen: made once, rotated once, from every point of interruption."""

import json
import os
import pwd
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.modules import ssh_keys
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.account_helper import account

COLLECTIONS = str(Path(ssh_keys.__file__).resolve().parents[2] / ".collections")
pytestmark = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="no ssh-keygen")
FILES = ["id_ed25519", "id_ed25519.pub"]


class User:
    """A user and the module."""

    def __init__(self, found):
        self.account = found
        self.ssh = found.home / ".ssh"

    def run(self, state="present", rotation="", check=False, **options):
        arguments = {
            "user": self.account.name, "directory": str(self.ssh), "comment": "t@n", "state": state, "rotation": rotation,
            "_ansible_check_mode": check, **options,
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "ansible_collections.allreduce.gpu.plugins.modules.ssh_keys"],
            input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}), capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": COLLECTIONS},
        )  # fmt: skip
        return json.loads(done.stdout)

    def names(self):
        return sorted(path.name for path in self.ssh.iterdir())

    def fits(self):
        """Whether the private key is that of the public one."""
        shown = subprocess.run(
            ["ssh-keygen", "-y", "-f", self.ssh / "id_ed25519"], capture_output=True, text=True, check=True
        )
        return shown.stdout.split()[:2] == (self.ssh / "id_ed25519.pub").read_text().split()[:2]


@pytest.fixture
def user():
    with account() as found:
        yield User(found)


def test_made_once(user):
    assert user.run(check=True)["changed"] and not user.ssh.exists()
    made = user.run()
    assert made["changed"] and made["public_key"].startswith("ssh-ed25519 ") and made["public_key"].endswith(" t@n\n")
    again = user.run()
    assert (again["changed"], again["public_key"], again["next_public_key"]) == (False, made["public_key"], None)
    assert user.names() == FILES
    modes = {path.name: (path.owner(), path.stat().st_mode & 0o777) for path in [user.ssh, *user.ssh.iterdir()]}
    name = user.account.name
    assert modes[".ssh"] == (name, 0o700) and modes["id_ed25519"] == (name, 0o600)
    assert not user.run("next", check=True)["changed"]


@pytest.mark.parametrize("empty", [FILES, FILES[:1], FILES[1:]])
def test_a_pair_of_which_a_power_cut_left_an_empty_file(user, empty):
    made = user.run()["public_key"]
    for name in empty:
        os.truncate(user.ssh / name, 0)
    again = user.run()
    assert user.fits() and user.names() == FILES
    assert again["changed"] and again["public_key"].endswith(" t@n\n")
    assert (again["public_key"] == made) is (empty == FILES[1:])
    assert not user.run()["changed"]


@pytest.mark.parametrize("check", [False, True])
def test_the_keys_of_an_account_that_is_to_be_set_up_wait(user, check):
    entry = pwd.getpwnam(user.account.name)
    wanted = {"group": user.account.group, "home": entry.pw_dir, "shell": "/bin/no-shell"}
    answer = user.run(check=check, account=wanted)
    assert (answer["account"], answer["changed"], answer["public_key"]) == (False, False, None)
    assert not user.ssh.exists()
    assert user.run(check=check)["account"]


def test_rotated_once(user):
    old = user.run()["public_key"]
    predicted = user.run("next", "2026-11", check=True)
    assert predicted["changed"] and predicted["next_public_key"] is None and not predicted["rotated"]
    prepared = user.run("next", "2026-11")
    assert prepared["changed"] and prepared["public_key"] == old
    assert prepared["next_public_key"].endswith(" t@n 2026-11\n")
    assert user.run("rotated", "2026-11", check=True)["changed"]
    for state in ("next", "present"):
        kept = user.run(state, "2026-11")
        assert (kept["changed"], kept["public_key"], kept["rotated"]) == (False, old, False)
    done = user.run("rotated", "2026-11")
    assert (done["changed"], done["public_key"]) == (True, prepared["next_public_key"])
    assert (done["next_public_key"], done["rotated"]) == (None, True)
    assert user.names() == FILES and user.fits()
    for state in ("next", "rotated", "present"):
        assert not user.run(state, "2026-11")["changed"]
    assert not user.run("present", "")["changed"]
    assert user.run("next", "2026-12")["next_public_key"].endswith(" t@n 2026-12\n")


def test_a_new_user_begins_with_the_rotation(user):
    assert user.run("next", "2026-11")["public_key"].endswith(" t@n 2026-11\n")
    assert not user.run("next", "2026-11")["changed"]


def test_interrupted_while_the_next_pair_was_made(user):
    user.run()
    user.run("next", "a")
    (user.ssh / "id_ed25519.next.pub").unlink()
    assert user.run("next", "a")["changed"]
    user.run("rotated", "a")
    assert user.names() == FILES and user.fits()


@pytest.mark.parametrize("state", ["next", "rotated", "present"])
@pytest.mark.parametrize("rotation", ["a", ""])
def test_interrupted_while_the_pair_was_replaced(user, state, rotation):
    user.run()
    user.run("next", "a")
    (user.ssh / "id_ed25519.next.pub").rename(user.ssh / "id_ed25519.pub")
    assert user.run(state, rotation)["changed"]
    assert user.names() == FILES and user.fits()
    assert not user.run(state, rotation)["changed"]


def test_a_rotation_that_nobody_wants_any_more_leaves_nothing(user):
    old = user.run()["public_key"]
    user.run("next", "a")
    later = user.run("next", "b")
    assert later["changed"] and later["next_public_key"].endswith(" t@n b\n")
    dropped = user.run()
    assert dropped["changed"] and dropped["public_key"] == old
    assert user.names() == FILES and user.fits()


def test_what_was_not_prepared_is_not_replaced(user):
    user.run()
    refused = user.run("rotated", "a")
    assert refused["failed"] and "id_ed25519.next.pub is missing" in refused["msg"]
    assert user.fits()


def test_removed_are_pairs_with_the_comment_alone(user):
    user.run("next", "a")
    user.run("next", "b")
    user.run(kind="ecdsa", comment="their own")
    assert user.run("absent", check=True)["changed"] and len(user.names()) == 6
    assert user.run("absent")["changed"]
    assert user.names() == ["id_ecdsa", "id_ecdsa.pub"]
    assert not user.run("absent")["changed"]


def test_a_user_who_is_still_to_be_made(user):
    nobody = {"user": "allreduce-nobody"}
    assert user.run(check=True, **nobody)["changed"]
    assert not user.run("absent", **nobody)["changed"]
    assert user.run(**nobody)["msg"] == "There is no user allreduce-nobody whose keys could be kept."


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can do what others cannot")
def test_links_of_the_user_lead_nowhere(user, tmp_path):
    user.ssh.symlink_to(tmp_path)
    assert user.run()["failed"] and not list(tmp_path.iterdir())


def test_a_pipe_is_no_public_key(user):
    user.ssh.mkdir()
    os.mkfifo(user.ssh / "id_ed25519.pub")
    if os.geteuid() == 0:
        shutil.chown(user.ssh, user.account.name)
        shutil.chown(user.ssh / "id_ed25519.pub", user.account.name)
    assert "id_ed25519.pub is not a regular file: remove it" in user.run()["msg"]


def test_a_pipe_is_no_private_key(user):
    """That a replacement was interrupted is seen by what ssh-keygen reads of it, which would wait for the pipe."""
    user.run()
    os.mkfifo(user.ssh / "id_ed25519.next")
    if os.geteuid() == 0:
        shutil.chown(user.ssh / "id_ed25519.next", user.account.name)
    began = time.monotonic()
    assert not user.run(rotation="2", state="next").get("failed")
    assert time.monotonic() - began < 30
    assert user.names() == sorted([*FILES, "id_ed25519.next", "id_ed25519.next.pub"])


def test_the_record_comes_with_its_time(user, tmp_path):
    path = tmp_path / "nodes.json"
    assert user.run(record=str(path))["record"] is None
    path.write_text("[]\n")
    os.utime(path, (5, 5))
    assert user.run(record=str(path))["record"] == {"text": "[]\n", "time": 5.0}
