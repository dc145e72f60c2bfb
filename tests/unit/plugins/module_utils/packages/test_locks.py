# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import fcntl
import os

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.packages import (
    installed as installed_packages,
)
from ansible_collections.allreduce.gpu.plugins.module_utils.packages import (
    locks as package_locks,
)
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree

LOCK = "/var/lib/dpkg/lock-frontend"


def _tree(tmp_path, pid, kind="WRITE"):
    files = tree(tmp_path, {LOCK: "", "/proc/77/cmdline": "/usr/bin/python3\0/usr/bin/unattended-upgrade\0"})
    inode = os.stat(files.path(LOCK)).st_ino
    line = f"1: POSIX  ADVISORY  {kind} {pid} 00:2f:{inode} 0 EOF\n"
    return tree(tmp_path, {"/proc/locks": "3: FLOCK  ADVISORY  WRITE 5 00:19:3 0 EOF\n" + line})


def test_the_holder_of_a_lock_is_named(tmp_path):
    held = package_locks.lock_holder(_tree(tmp_path, 77))
    assert held == {"pid": 77, "program": "/usr/bin/python3 /usr/bin/unattended-upgrade"}


@pytest.mark.parametrize(("pid", "kind"), [(78, "WRITE"), (0, "WRITE"), (77, "READ")], ids=["gone", "outside", "reads"])
def test_nobody_holds_it(tmp_path, pid, kind):
    assert package_locks.lock_holder(_tree(tmp_path, pid, kind)) is None


def test_dnf_writes_its_number_into_a_file(tmp_path):
    files = {"/var/lib/dnf/rpmdb_lock.pid": "77", "/proc/77/cmdline": "dnf\0upgrade\0"}
    assert package_locks.lock_holder(tree(tmp_path, files)) == {"pid": 77, "program": "dnf upgrade"}


def test_the_kernel_writes_it_like_this(tmp_path):
    files = tree(tmp_path, {LOCK: ""})
    with open(files.path(LOCK), "w", encoding="utf-8") as stream:
        fcntl.lockf(stream, fcntl.LOCK_EX)
        for name in ("locks", f"{os.getpid()}/cmdline"):
            with open(f"/proc/{name}", encoding="utf-8") as source:
                tree(tmp_path, {f"/proc/{name}": source.read()})
        assert package_locks.lock_holder(files)["pid"] == os.getpid()


def test_an_upgrade_that_was_cut_off_leaves_packages_twice():
    listed = "bash 0:5-1\nglibc 0:2-1\nglibc 0:2-1\nkernel 0:4-1\nkernel 0:4-2\nnvidia-driver 3:535-1\nnvidia-driver 3:550-1\n"
    assert installed_packages.rpm_duplicates(listed) == ["nvidia-driver"]
