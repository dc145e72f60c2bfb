# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel and util-linux say of disks: recorded output."""

import json

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.storage.tables import (
    bare_uuid,
    lsblk_devices,
    parse_mounts,
    parse_swaps,
    parse_wipefs,
    unescape,
)

# wipefs --parsable of util-linux 2.38.1: a file system whose label has a comma, a disk with GPT, a member of md.
EXT4 = "# offset,uuid,label,type\n0x438,9b798753-4028-43a9-9146-9bedcbca6df0,a,b,ext4\n"
GPT = "# offset,uuid,label,type\n0x200,,,gpt\n0x3fffe00,,,gpt\n0x1fe,,,PMBR\n"
# lsblk -J -b -O of util-linux 2.38.1, shortened to the columns that are read: the machine of a laboratory without udev.
LAB = {"blockdevices": [
    {"name": "loop0", "kname": "loop0", "fstype": None, "pttype": None, "type": "loop", "mountpoints": [None]},
    {"name": "zram0", "kname": "zram0", "fstype": None, "pttype": None, "type": "disk", "mountpoints": [None]},
    {"name": "vda", "kname": "vda", "fstype": None, "pttype": None, "type": "disk", "mountpoints": ["/run/netns", "/"]},
]}  # fmt: skip
# The shape of lsblk(8) where there are children: RAID0 of two disks, and a partitioned one.
SERVER = {"blockdevices": [
    {"name": "nvme0n1", "fstype": "linux_raid_member", "pttype": None, "children": [
        {"name": "md127", "type": "raid0", "fstype": "xfs", "pttype": None}]},
    {"name": "nvme1n1", "fstype": None, "pttype": "gpt", "children": [
        {"name": "nvme1n1p1", "type": "part", "fstype": "vfat", "pttype": "gpt"}]},
]}  # fmt: skip


def test_signatures():
    assert parse_wipefs(EXT4) == [{"offset": 0x438, "uuid": "9b798753-4028-43a9-9146-9bedcbca6df0", "type": "ext4"}]
    assert [(one["offset"], one["type"]) for one in parse_wipefs(GPT)] == [
        (0x200, "gpt"),
        (0x3FFFE00, "gpt"),
        (0x1FE, "PMBR"),
    ]
    assert parse_wipefs("") == []


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (LAB, {"loop0": [], "zram0": [], "vda": []}),
        (SERVER, {
            "nvme0n1": ["linux_raid_member", "raid0 md127", "xfs"], "nvme1n1": ["gpt", "part nvme1n1p1", "vfat"],
        }),
        ({}, {}), ([], {}), ("text", {}),
    ],
)  # fmt: skip
def test_lsblk(document, expected):
    assert lsblk_devices(json.dumps(document)) == expected


def test_lsblk_without_an_answer():
    assert lsblk_devices(None) == {} and lsblk_devices("no JSON") == {}


def test_mounts():
    text = (
        "29 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw,errors=remount-ro\n"
        "40 29 9:127 / /mnt/my\\040data rw,noatime - xfs /dev/md127 rw,inode64\n"
        "41 29 9:127 /sub /srv rw shared:2 master:3 propagate_from:4 - xfs /dev/md127 rw\n"
        "broken line\n"
    )
    found = parse_mounts(text)
    assert [(one["number"], one["root"], one["point"], one["type"], one["source"]) for one in found] == [
        ("8:2", "/", "/", "ext4", "/dev/sda2"),
        ("9:127", "/", "/mnt/my data", "xfs", "/dev/md127"),
        ("9:127", "/sub", "/srv", "xfs", "/dev/md127"),
    ]
    assert [(one["id"], one["parent"], one["groups"]) for one in found] == [
        ("29", "1", {"shared": "1"}),
        ("40", "29", {}),
        ("41", "29", {"shared": "2", "master": "3", "propagate_from": "4"}),
    ]
    assert found[1]["options"] == ["inode64", "noatime", "rw"] and parse_mounts(None) == []


def test_swaps():
    text = (
        "Filename\tType\tSize\tUsed\tPriority\n/dev/nvme0n1p3   partition\t8388604\t0\t-2\n/swap\\040file file 1 0 -3\n"
    )
    assert parse_swaps(text) == {"/dev/nvme0n1p3", "/swap file"} and parse_swaps(None) == set()


def test_names_of_the_kernel():
    assert unescape("/a\\040b\\134c\\011d") == "/a b\\c\td"


def test_uuids_of_mdadm_and_blkid():
    assert bare_uuid("a26bf396:31389f83:0df1722d:f404fe4c") == bare_uuid("A26BF396-3138-9f83-0df1-722df404fe4c")
    assert bare_uuid(None) == ""
