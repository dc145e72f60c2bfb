# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is seen on a disk: each thing that speaks against it, on a recorded machine."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.storage.blank import OWNERS, sightings
from ansible_collections.allreduce.gpu.plugins.module_utils.storage.describe import SENTENCES, describe
from ansible_collections.allreduce.gpu.plugins.module_utils.storage.disks import read_disks, resolve
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.storage_helper import Node


def look(here, name="nvme0n1"):
    found = read_disks(here.tree, here.output, here.is_free)
    disk = next(one for one in found if one["name"] == name)
    against = sightings(disk, found)
    assert all("/dev/" in describe(one) for one in against)
    return {one["code"]: describe(one) for one in against}


@pytest.fixture
def here(tmp_path):
    made = Node(tmp_path)
    made.disk("nvme0n1", wwid="eui.00253845410001")
    return made


def test_a_blank_disk(here):
    assert look(here) == {}
    disk = read_disks(here.tree, here.output, here.is_free)[0]
    assert {key: disk[key] for key in ("device", "kind", "size", "model", "serial", "transport", "paths")} == {
        "device": "/dev/nvme0n1", "kind": "nvme", "size": 1920383410176, "model": "SAMSUNG MZQL21T9HCJR-00A07",
        "serial": "S-nvme0n1", "transport": "pcie", "paths": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("type_", "code"),
    [
        ("gpt", "partition_table"), ("dos", "partition_table"), ("PMBR", "partition_table"), ("ext4", "filesystem"),
        ("xfs", "filesystem"), ("vfat", "filesystem"), ("linux_raid_member", "md_member"), ("LVM2_member", "lvm"),
        ("swap", "swap_signature"), ("zfs_member", "zfs"), ("crypto_LUKS", "encrypted"), ("ceph_bluestore", "ceph"),
        ("isw_raid_member", "filesystem"), ("something new", "filesystem"),
    ],
)  # fmt: skip
def test_signatures(here, type_, code):
    here.signatures["/dev/nvme0n1"].append((0x1000, "1-2", "label", type_))
    assert look(here) == {code: SENTENCES[code].format(subject="/dev/nvme0n1", type=type_, offset=4096)}
    assert set(OWNERS.values()) <= set(SENTENCES)


@pytest.mark.parametrize(
    ("path", "text", "code"),
    [
        ("ro", "1", "read_only"),
        ("removable", "1", "removable"),
        ("queue/zoned", "host-managed", "zoned"),
        ("size", "0", "no_size"),
        ("nvme0n1p1/partition", "1", "partitions"),
        ("holders/dm-0/x", "", "holders"),
        ("device/transport", "tcp", "remote"),
        ("device/model", "Amazon Elastic Block Store", "remote"),
        ("device/model", "MSFT NVMe Accelerator v1.0", "remote"),
        ("device/model", "nvme_card-pd", "remote"),
    ],
)
def test_the_kernel_says(here, path, text, code):
    here.write("/sys/block/nvme0n1/" + path, text + "\n")
    assert list(look(here)) == [code]


@pytest.mark.parametrize("model", ["Amazon EC2 NVMe Instance Storage", "Microsoft NVMe Direct Disk v2", "nvme_card0"])
def test_local_disks_of_a_cloud(here, model):
    here.write("/sys/block/nvme0n1/device/model", model + "\n")
    assert look(here) == {}


def test_a_holder_below_a_partition_is_named_with_its_kind(here):
    here.write("/sys/block/nvme0n1/nvme0n1p2/partition", "2\n")
    here.write("/sys/block/nvme0n1/nvme0n1p2/holders/dm-3/x", "")
    here.write("/sys/block/dm-3/dm/uuid", "LVM-abc\n")
    assert look(here)["holders"] == "/dev/nvme0n1 is part of dm-3 (lvm)"


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("40 29 259:0 / /data rw - ext4 /dev/nvme0n1 rw", "/data"),
        ("40 29 0:50 / /pool rw - btrfs /dev/nvme0n1 rw", "/pool"),
    ],
)
def test_mounted(here, line, where):
    here.write("/proc/self/mountinfo", line + "\n")
    assert look(here) == {"mounts": "/dev/nvme0n1 is mounted at " + where}


def test_a_mounted_partition(here):
    here.write("/sys/block/nvme0n1/nvme0n1p1/partition", "1\n")
    here.write("/sys/block/nvme0n1/nvme0n1p1/dev", "259:7\n")
    here.write("/proc/self/mountinfo", "40 29 259:7 / /boot rw - ext4 /dev/root rw\n")
    assert look(here)["mounts"] == "/dev/nvme0n1 is mounted at /boot"


def test_swap(here):
    here.write("/proc/swaps", "Filename Type Size Used Priority\n/dev/nvme0n1 partition 1 0 -2\n")
    assert list(look(here)) == ["swap"]


def test_held_and_nobody_says_by_whom(here):
    here.held.add("/dev/nvme0n1")
    assert list(look(here)) == ["busy"]


def test_nobody_could_look(here):
    here.signatures.pop("/dev/nvme0n1")
    assert list(look(here)) == ["not_examined"]
    found = read_disks(here.tree, lambda command: "", lambda path: None)
    assert [one["code"] for one in sightings(found[0], found)] == ["not_examined"]


def test_lsblk_is_a_witness(here):
    here.lsblk = {"blockdevices": [{"name": "nvme0n1", "fstype": "zfs_member"}]}
    assert look(here) == {"listed": "/dev/nvme0n1 has zfs_member, according to lsblk"}


def test_the_same_disk_twice(here):
    here.disk("nvme1n1", wwid="eui.00253845410001")
    assert list(look(here)) == ["multipath"] and list(look(here, "nvme1n1")) == ["multipath"]


def test_a_namespace_with_two_controllers(here):
    for name in ("nvme0", "nvme1"):
        here.write(f"/sys/block/nvme0n1/device/{name}/address", "0000:01:00.0\n")
    assert list(look(here)) == ["multipath"]
    here.write("/sys/block/nvme0n1/device/nvme0/transport", "rdma\n")
    assert sorted(look(here)) == ["multipath", "remote"]


def test_what_is_no_disk(here):
    here.disk("nvme0c0n1", hidden="1")
    for name in ("loop0", "md0", "dm-0", "zram0", "sr0"):
        here.disk(name, size=0)
    here.disk("loop1", size=1 << 30)
    here.disk("sda")
    found = read_disks(here.tree, here.output, here.is_free)
    assert [(one["name"], one["kind"]) for one in found] == [("loop1", "loop"), ("nvme0n1", "nvme"), ("sda", "disk")]


def test_names_of_disks(here, tmp_path):
    (tmp_path / "dev/disk/by-id").mkdir(parents=True)
    (tmp_path / "dev/disk/by-id/nvme-a").symlink_to("../../nvme0n1")
    (tmp_path / "dev/disk/by-id/nvme-a-part1").symlink_to("../../nvme0n1p1")
    assert resolve(here.tree, "/dev/disk/by-id/nvme-a") == "nvme0n1" == resolve(here.tree, "/dev/nvme0n1")
    assert resolve(here.tree, "/dev/disk/by-id/nvme-a-part1") is None and resolve(here.tree, "/nvme0n1") is None
