# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The key of munge: made once, given to others, readable by its user alone."""

import os
import stat

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import munge_key
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree

SELF = (os.getuid(), os.getgid())


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "munge" / "munge.key")


def content(path):
    with open(path, "rb") as stream:
        return stream.read()


def test_the_first_host_makes_one_and_keeps_it(path):
    changed, key = munge_key.keep(path, None, SELF, False)
    assert (changed, len(key), content(path)) == (True, 1024, key)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o400
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    assert munge_key.keep(path, None, SELF, False) == (False, key)


def test_two_hosts_make_different_ones(tmp_path):
    first, second = (munge_key.keep(str(tmp_path / name), None, SELF, False)[1] for name in "ab")
    assert first != second


@pytest.mark.parametrize("there", [None, b"y" * 1024, b"short"])
def test_another_host_takes_it(path, there):
    if there is not None:
        os.makedirs(os.path.dirname(path))
        with open(path, "wb") as stream:
            stream.write(there)
    wanted = bytes(bytearray(range(256))) * 4
    assert munge_key.keep(path, wanted, SELF, True)[0]
    assert not os.path.exists(path) or content(path) == there
    assert munge_key.keep(path, wanted, SELF, False) == (True, wanted)
    assert content(path) == wanted
    assert munge_key.keep(path, wanted, SELF, False) == (False, wanted)
    assert os.listdir(os.path.dirname(path)) == ["munge.key"]


def stat_of(pid, start, name="munged"):
    return f"{pid} ({name}) S 1 " + " ".join(["0"] * 17) + f" {start} 0\n"


def test_a_key_is_new_until_munged_was_restarted_with_it(path, tmp_path):
    """A run that ends between the two, such as by a package that cannot be installed, leaves a munged with the key before."""
    here = tree(tmp_path / "root", {"/proc/7/stat": stat_of(7, 100), "/proc/8/stat": stat_of(8, 90, "sshd")})
    wanted = b"k" * 64
    assert munge_key.bring(here, path, wanted, SELF, False) == (True, wanted)
    for check in (True, False):
        assert munge_key.bring(here, path, wanted, SELF, check) == (True, wanted)
    (tmp_path / "root" / "proc" / "7" / "stat").write_text(stat_of(7, 300), "utf-8")
    assert munge_key.bring(here, path, wanted, SELF, False) == (False, wanted)
    assert not here.names("/run/allreduce")


def test_a_key_that_comes_before_munged_needs_no_restart(path, tmp_path):
    here = tree(tmp_path / "root", {})
    assert munge_key.bring(here, path, b"k" * 64, SELF, False)[0]
    tree(tmp_path / "root", {"/proc/7/stat": stat_of(7, 100)})
    assert not munge_key.bring(here, path, b"k" * 64, SELF, False)[0]


def test_check_mode_makes_none_and_returns_none(path):
    assert munge_key.keep(path, None, SELF, True) == (True, None)
    assert not os.path.exists(path)


def test_a_key_that_others_can_read_is_closed(path):
    key = munge_key.keep(path, None, SELF, False)[1]
    os.chmod(path, 0o644)
    assert munge_key.keep(path, key, SELF, True) == (True, key)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o644
    assert munge_key.keep(path, key, SELF, False) == (True, key)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o400


@pytest.mark.parametrize("size", [31, 1025])
def test_a_key_that_munged_would_not_take_is_not_the_cluster_s(path, size):
    os.makedirs(os.path.dirname(path))
    with open(path, "wb") as stream:
        stream.write(b"x" * size)
    with pytest.raises(ValueError, match="munged takes 32 to 1024"):
        munge_key.keep(path, None, SELF, False)


def test_a_link_is_not_followed(path, tmp_path):
    os.makedirs(os.path.dirname(path))
    (tmp_path / "other").write_bytes(b"x" * 1024)
    os.symlink(str(tmp_path / "other"), path)
    wanted = b"k" * 64
    assert munge_key.keep(path, wanted, SELF, False) == (True, wanted)
    assert not os.path.islink(path) and (tmp_path / "other").read_bytes() == b"x" * 1024


def test_the_owner_is_root_before_the_package_has_made_the_user():
    assert munge_key.owner("nobody-of-that-name") == (0, 0)
