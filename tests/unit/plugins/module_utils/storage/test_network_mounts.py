# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""File systems that others mount: which count, which is seen where several are, and what one that hangs costs."""

import errno
import os
import pwd
import time

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.procfs import has_network_mounts
from ansible_collections.allreduce.gpu.plugins.module_utils.storage import network_mounts

NFS = "36 25 0:52 / {point} rw,relatime shared:1 - nfs4 nfs-1:/data rw,hard\n"
LOCAL = "40 25 8:1 / {point} rw,relatime - ext4 /dev/sda1 rw\n"
STATVFS = os.statvfs


@pytest.fixture
def tree(tmp_path):
    """A tree of /proc with these mounts."""

    def write(text):
        (tmp_path / "self").mkdir(exist_ok=True)
        (tmp_path / "self" / "mountinfo").write_text(text)
        return FileTree(str(tmp_path))

    return write


@pytest.fixture
def answers(monkeypatch):
    """{path: what asking it does} in place of the directory of the test."""
    found = {}

    def statvfs(point):
        if point in found:
            found[point]()
        return STATVFS("/")

    monkeypatch.setattr(network_mounts.os, "statvfs", statvfs)
    monkeypatch.setattr(network_mounts.os, "access", lambda point, mode: point != "/read_only")
    return found


def hang():
    time.sleep(60)


def stale():
    raise OSError(errno.ESTALE, "Stale file handle")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("nfs", True), ("nfs4", True), ("lustre", True), ("gpfs", True), ("fuse.sshfs", True), ("fuse.ceph-fuse", True),
     ("ext4", False), ("fuse.portal", False), ("nfsd", False)],
)  # fmt: skip
def test_what_is_a_network_file_system(tree, kind, expected):
    assert network_mounts.is_network(kind) is expected
    assert has_network_mounts(tree(NFS.format(point="/data").replace("nfs4", kind))) is expected


def test_each_file_system_is_asked_once_at_its_first_path(tree, answers):
    twice = tree(NFS.format(point="/srv/b") + NFS.format(point="/srv/a") + LOCAL.format(point="/home"))
    assert network_mounts.read_network_mounts(twice) == [
        {"point": "/srv/a", "type": "nfs4", "source": "nfs-1:/data", "fault": None}
    ]


def test_what_was_mounted_last_is_seen(tree, answers):
    answers["/data"] = hang
    assert network_mounts.read_network_mounts(tree(NFS.format(point="/data") + LOCAL.format(point="/data"))) == []


def test_a_path_with_a_space(tree, answers):
    (found,) = network_mounts.read_network_mounts(tree(NFS.format(point="/my\\040data")))
    assert found["point"] == "/my data"


def test_one_that_hangs_keeps_no_other_waiting(tree, answers, monkeypatch):
    monkeypatch.setattr(network_mounts, "SECONDS", 1)
    answers.update({"/a": hang, "/b": stale})
    lines = [
        NFS.format(point=point).replace("0:52", number)
        for point, number in (("/a", "0:1"), ("/b", "0:2"), ("/c", "0:3"))
    ]
    began = time.monotonic()
    found = network_mounts.read_network_mounts(tree("".join(lines)))
    assert time.monotonic() - began < 20
    assert {one["point"]: one["fault"] for one in found} == {"/a": "silent", "/b": "ESTALE", "/c": None}


def test_nothing_is_started_where_there_is_none(tree, monkeypatch):
    monkeypatch.setattr(network_mounts, "bounded", pytest.fail)
    assert network_mounts.read_network_mounts(tree(LOCAL.format(point="/"))) == []
    assert network_mounts.probe_mounts(tree(""), [], "trainer") == {}


def test_what_is_told_of_declared_paths(tree, answers, monkeypatch):
    monkeypatch.setattr(network_mounts, "SECONDS", 1)
    answers["/hangs"] = hang
    table = "".join(
        text.replace("0:52", f"0:{number}")
        for number, text in enumerate(
            [NFS.format(point="/data"), NFS.format(point="/hangs"), LOCAL.format(point="/read_only")]
        )
    )
    me = pwd.getpwuid(os.getuid()).pw_name
    found = network_mounts.probe_mounts(tree(table), ["/data/", "/hangs", "/read_only", "/nothing"], me)
    assert found["/nothing"] is None
    assert (found["/data/"]["type"], found["/data/"]["source"], found["/data/"]["writable"]) == (
        "nfs4",
        "nfs-1:/data",
        True,
    )
    assert found["/data/"]["free"] > 0
    assert (found["/hangs"]["fault"], found["/hangs"]["free"]) == ("silent", None)
    assert (found["/read_only"]["fault"], found["/read_only"]["writable"]) == (None, False)
