# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fact gpu_scratch, what an option becomes, and what is shown."""

import os
import pwd

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.storage import reading, record
from ansible_collections.allreduce.gpu.plugins.module_utils.storage.accounts import identify
from ansible_collections.allreduce.gpu.plugins.module_utils.storage.diffs import diffs
from ansible_collections.allreduce.gpu.plugins.module_utils.storage.facts import scratch_fact
from ansible_collections.allreduce.gpu.plugins.module_utils.storage.scratch import settle, take_down
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.storage_helper import SIZE, Node

GIVEN = {
    "disks": [], "count": 0, "minimum_gb": 1, "name": "scratch", "mount_point": "/scratch/", "options": ["noatime"],
    "chunk_kib": 512, "owner": "root", "group": "", "mode": "0755", "trim": True,
}  # fmt: skip
ME = pwd.getpwuid(os.getuid()).pw_name


def fact(here):
    wanted = identify(dict(GIVEN, owner=ME))
    seen = reading.read(here.tree, here.output, [], "/scratch", here.is_free)
    return scratch_fact(wanted, seen, record.load(here.tree), here.tree.exists(record.PATH))


@pytest.fixture
def here(tmp_path):
    made = Node(tmp_path)
    for name in ("nvme0n1", "nvme1n1"):
        made.disk(name)
    return made


def test_before(here, tmp_path):
    (tmp_path / "usr/sbin/mdadm").unlink()
    found = fact(here)
    assert found["packages"] == ["mdadm"] and found["recorded"] is False and found["mounted"] is None
    assert [(one["device"], one["size"], one["taken"]) for one in found["disks"]] == [
        ("/dev/nvme0n1", SIZE, True), ("/dev/nvme1n1", SIZE, True),
    ]  # fmt: skip
    assert found["members"] == [] and found["expected"] == 2


def test_one_disk_needs_no_mdadm(here, tmp_path):
    (tmp_path / "usr/sbin/mdadm").unlink()
    (tmp_path / "usr/sbin/mkfs.xfs").unlink()
    here.signatures["/dev/nvme1n1"].append((0, "1", "", "xfs"))
    assert fact(here)["packages"] == ["xfsprogs"]
    here.signatures["/dev/nvme0n1"].append((0, "1", "", "xfs"))
    assert fact(here)["packages"] == [] and fact(here)["left"] == "none_blank"


def test_after(here):
    wanted = identify(dict(GIVEN, owner=ME))
    shown = diffs(settle(here.machine(), wanted)["changes"])
    assert [one["after_header"] for one in shown] == ["/etc/fstab", "/etc/mdadm/mdadm.conf", "scratch"]
    assert "/dev/md/scratch: RAID0 of /dev/nvme0n1, /dev/nvme1n1" in shown[2]["after"]
    found = fact(here)
    assert found["recorded"] and found["array"] == "/dev/md/scratch" and found["device"] == "/dev/md127"
    assert found["members"] == ["/dev/nvme0n1", "/dev/nvme1n1"] and found["trim"] is True and found["refused"] == []
    assert found["mounted"]["ours"] and found["mounted"]["mode"] == "0755"
    assert found["mounted"]["owner"].split(":")[0] == ME
    assert take_down(here.machine(), False)["problems"] == []
    assert fact(here)["recorded"] is False


def test_after_a_stop(here):
    settle(here.machine(), identify(dict(GIVEN, owner=ME)))
    here.replace_disks("nvme0n1", "nvme1n1")
    found = fact(here)
    assert found["members"] == [] and found["mounted"] is None and found["refused"] == [] and found["expected"] == 2
    here.signatures["/dev/nvme0n1"].append((0, "1", "", "xfs"))
    assert [one["code"] for one in fact(here)["refused"]] == ["record_does_not_fit", "filesystem"]


def test_options():
    wanted = identify(GIVEN)
    assert wanted["options"] == ["noatime", "nofail"] and wanted["mount_point"] == "/scratch"
    assert wanted["minimum"] == 10**9 and (wanted["uid"], wanted["gid"]) == (0, 0) and wanted["problems"] == []


@pytest.mark.parametrize(("key", "value"), [("owner", "no-such-user"), ("group", "no-such-group")])
def test_unknown_accounts(key, value):
    found = identify(dict(GIVEN, **{key: value}))["problems"]
    assert [(one["code"], one["subject"]) for one in found] == [("owner_missing", value)]
    assert identify(dict(GIVEN, **{key: value}), check=True)["problems"] == []
