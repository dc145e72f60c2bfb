# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work as a user: nothing of root's is left, and what goes wrong arrives as what it was."""

import os
import time

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host.as_user import as_user
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.account_helper import account


@pytest.fixture
def user():
    with account() as found:
        yield found


def test_the_work_is_the_users_own(user):
    def work():
        (user.home / "file").write_text("x")
        return [os.getresuid(), os.getresgid(), os.getgroups(), os.getcwd()]

    users, groups, further, where = as_user(user.name, work)
    status = user.home.stat()
    assert users == [status.st_uid] * 3 and groups == [status.st_gid] * 3 and where == "/"
    assert os.geteuid() or 0 not in further
    made = (user.home / "file").stat()
    assert (made.st_uid, made.st_mode & 0o777) == (status.st_uid, 0o600)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can read what others cannot")
def test_what_is_roots_alone_stays_so(user, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    secret.chmod(0o600)
    with pytest.raises(PermissionError) as refused:
        as_user(user.name, secret.read_text)
    assert refused.value.filename == str(secret)


def refuse():
    raise ValueError("no")


@pytest.mark.parametrize(
    ("work", "error", "words"),
    [
        (refuse, ValueError, "^no$"),
        (lambda: open("/no/such/file").close(), FileNotFoundError, "/no/such/file"),
        (lambda: os._exit(3), ValueError, "ended with failed"),
    ],
)
def test_errors_arrive(user, work, error, words):
    with pytest.raises(error, match=words):
        as_user(user.name, work)


def test_work_that_does_not_end_is_ended(user):
    with pytest.raises(ValueError, match="ended with timeout"):
        as_user(user.name, lambda: time.sleep(60), seconds=0.2)


def test_an_unknown_user():
    with pytest.raises(KeyError):
        as_user("allreduce-nobody", refuse)
