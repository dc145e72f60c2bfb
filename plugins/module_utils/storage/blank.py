# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say what speaks against taking a disk, by what was seen on it; a disk that nothing speaks against is blank."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..machine.problems import problem

# Volumes of a cloud's network that come as NVMe disks, by the beginning of their model. Sources: the NVMe pages of the AWS EC2
# and EBS user guides; Azure/azure-vm-utils, README.md; Google Cloud, "Local SSD" (nvme_card) next to nvme_card-pd.
REMOTE_MODELS = ("Amazon Elastic Block Store", "MSFT NVMe Accelerator", "nvme_card-pd")
LOCAL_TRANSPORTS = (None, "pcie")
# What a signature says about its owner; any other type is a file system.
OWNERS = {
    "linux_raid_member": "md_member", "LVM2_member": "lvm", "LVM1_member": "lvm", "swap": "swap_signature", "zfs_member": "zfs",
    "crypto_LUKS": "encrypted", "ceph_bluestore": "ceph", "gpt": "partition_table", "dos": "partition_table",
    "PMBR": "partition_table", "mac": "partition_table", "sun": "partition_table", "sgi": "partition_table",
    "bsd": "partition_table", "atari": "partition_table",
}  # fmt: skip


def sightings(disk, disks):
    """Return [{code, subject: device, detail}] of what was seen; ``disks``: all, since two may be one."""
    found = [(code, {}) for code in ("read_only", "removable", "zoned") if disk[code]]
    found += _states(disk, disks)
    for code in ("partitions", "holders", "mounts", "swap"):
        if disk[code]:
            found.append((code, {"names": disk[code]}))
    for one in disk["signatures"] or []:
        found.append((OWNERS.get(one["type"], "filesystem"), {"type": one["type"], "offset": one["offset"]}))
    if disk["children"]:
        found.append(("listed", {"names": disk["children"]}))
    return [problem(code, disk["device"], **detail) for code, detail in found]


def _states(disk, disks):
    found = []
    if not disk["size"]:
        found.append(("no_size", {}))
    if disk["transport"] not in LOCAL_TRANSPORTS:
        found.append(("remote", {"what": "transport %s" % disk["transport"]}))
    elif (disk["model"] or "").startswith(REMOTE_MODELS):
        found.append(("remote", {"what": disk["model"]}))
    twins = [one["device"] for one in disks if one is not disk and disk["wwid"] and one["wwid"] == disk["wwid"]]
    if twins or disk["paths"] > 1:
        found.append(("multipath", {"names": twins, "paths": max(disk["paths"], len(twins) + 1)}))
    if disk["signatures"] is None or disk["free"] is None:
        found.append(("not_examined", {}))
    if disk["free"] is False and not (disk["mounts"] or disk["holders"] or disk["swap"]):
        found.append(("busy", {}))
    return found
