# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read /proc: what the loaded NVIDIA kernel module reports, and whether network file systems are mounted."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from .sysfs import normalise_address

# systemd, src/basic/mountpoint-util.c, fstype_is_network, and what is common in clusters in addition; FUSE's names begin with "fuse.".
NETWORK_KINDS = (
    "afs", "ceph", "ceph-fuse", "cifs", "davfs", "gfs2", "glusterfs", "lustre", "nfs", "nfs4", "ocfs2", "orangefs", "smb3", "sshfs",
    "beegfs", "beegfs_nodev", "gpfs", "juicefs", "panfs", "wekafs",
)  # fmt: skip
# proc(5), /proc/pid/mountinfo: the type follows the separator.
_NETWORK_MOUNT = re.compile(r" - (?:fuse\.)?(?:%s) " % "|".join(NETWORK_KINDS))


def has_network_mounts(tree):
    """Return True if a network file system is mounted; what asks them is not even imported on a node without one."""
    return bool(_NETWORK_MOUNT.search(tree.text("/self/mountinfo") or ""))


def read_driver(tree):
    """Return {``loaded_version``, ``kernel_modules`` (open|proprietary)} of the loaded module, both None without."""
    text = tree.text("/driver/nvidia/version") or ""
    line = next((line for line in text.splitlines() if line.startswith("NVRM version:")), None)
    if line is None:
        return {"loaded_version": None, "kernel_modules": None}
    found = re.search(r"\s(\d+\.\d+(?:\.\d+)?)(?:\s|$)", line)
    return {
        "loaded_version": found.group(1) if found else None,
        "kernel_modules": "open" if "Open Kernel Module" in line else "proprietary",
    }


def read_gpus(tree):
    """Return {pci_bus_id: {``name``, ``uuid``, ``minor_number``}} of the GPUs the module has bound, hidden ones too."""
    gpus = {}
    for entry in tree.names("/driver/nvidia/gpus"):
        text = tree.text("/driver/nvidia/gpus/%s/information" % entry) or ""
        fields = {
            key.strip(): value.strip() for key, dummy, value in (line.partition(":") for line in text.splitlines())
        }
        minor, uuid = fields.get("Device Minor", ""), fields.get("GPU UUID", "")
        gpus[normalise_address(entry)] = {
            "name": fields.get("Model") or None,
            "uuid": uuid if uuid.startswith("GPU-") and "?" not in uuid else None,
            "minor_number": int(minor) if minor.isdigit() else None,
        }
    return gpus
