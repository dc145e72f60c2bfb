# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences about disks and the scratch on them: for people, nothing is decided by them."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..machine.sizes import free_words, needed_words

SENTENCES = {
    "read_only": "{subject} is read-only",
    "removable": "{subject} is removable",
    "zoned": "{subject} is zoned",
    "no_size": "{subject} has no size",
    "remote": "{subject} is not a local disk ({what})",
    "multipath": "{subject} can be reached over {paths} paths: {names}",
    "not_examined": "{subject} cannot be examined",
    "busy": "{subject} is held by the kernel",
    "partitions": "{subject} has the partitions {names}",
    "holders": "{subject} is part of {names}",
    "mounts": "{subject} is mounted at {names}",
    "swap": "{subject} is used as swap: {names}",
    "listed": "{subject} has {names}, according to lsblk",
    "filesystem": "{subject} has a signature of {type} at {offset}",
    "partition_table": "{subject} has a partition table ({type} at {offset})",
    "md_member": "{subject} has the metadata of an md array ({type} at {offset})",
    "lvm": "{subject} is a physical volume of LVM ({type} at {offset})",
    "swap_signature": "{subject} is formatted as swap ({type} at {offset})",
    "zfs": "{subject} belongs to ZFS ({type} at {offset})",
    "encrypted": "{subject} is encrypted ({type} at {offset})",
    "ceph": "{subject} belongs to Ceph ({type} at {offset})",
    "no_disk": "{subject} is not a whole disk of this node",
    "named_twice": "{subject} is named twice",
    "count_differs": "{expected} blank disks are wanted for {subject}, but there are {found}",
    "sizes_differ": "the disks for {subject} differ in size: {found}",
    "too_small": "the disks for {subject} have {found} bytes in total, but {expected} are wanted",
    "members_missing": "of the disks of {subject} ({expected}), all that is left is {found}",
    "record_does_not_fit": "{subject} was on {expected}, but the blank disks are {found}",
    "fixed": "{subject} is {found} and cannot become {expected} while the scratch exists",
    "fstab_taken": "/etc/fstab mounts {source} at {subject}",
    "array_taken": "mdadm.conf gives {subject} to another array: {line}",
    "mount_point_not_empty": "{subject} has {names}, which the scratch would hide",
    "mount_point_taken": "{source} is mounted at {subject}",
    "array_incomplete": "{subject} has only some of its disks, or is not running",
    "foreign_content": "{subject} has {type}, which is not ours",
    "in_use": "{subject} is in use by {users}",
    "owner_missing": "{subject} is neither a user nor a group of this node",
    "not_settled": "{subject} ({kind}) does not stay as it was created",
    "stage_not_mounted": "nothing is mounted at {subject}: create the scratch first, or set stage_needs_mount to false",
    "stage_not_writable": "{subject} is not a directory that stage_owner may write to",
    "stage_foreign": "{subject} exists and has no {manifest}, so it was not staged: move it away or choose another stage_name",
    "stage_no_manifest": "the manifest {subject} cannot be read from the source: {reason}",
    "stage_other_manifest": "the manifest {subject} has the checksum {found} and not {expected}",
    "stage_no_entry": "line {line} of {subject} is not in sha256sum's format, or names a file that is not below the source",
    "stage_empty": "{subject} names no file",
    "stage_no_file": "the source does not have {subject}, or does not report its size",
    "stage_no_space": "{subject} has {free} free, and {needed} are to be copied",
    "stage_busy": "another run is assembling {subject}",
    "stage_not_fetched": "{subject} could not be copied: {reason}",
    "stage_differs": "{subject} of the source does not match its manifest",
    "command_failed": "{subject} ended with {status}: {reason}",
}
LEFT = {
    "container": "the disks belong to the container's host",
    "none_blank": "it has no blank local NVMe disk",
}
SIZES = {"free": free_words, "needed": needed_words}


def describe(problem):
    """Return the sentence for a problem, without its end."""
    detail = {key: SIZES.get(key, _words)(value) for key, value in problem["detail"].items()}
    return SENTENCES[problem["code"]].format(subject=problem["subject"], **detail)


def _words(value):
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else value
