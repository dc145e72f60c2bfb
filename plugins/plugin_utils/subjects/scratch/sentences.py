# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences for problems with what a user asks of role scratch."""

from __future__ import annotations

from ...problems.sentence import Sentence

SENTENCES = {
    "scratch_no_path": Sentence(
        "scratch_disks has {subject}, which does not name a disk",
        "give its path below /dev, without a pattern, best from /dev/disk/by-id",
    ),
    "scratch_mount_point": Sentence(
        "scratch_mount_point is {subject}",
        "give an absolute path that hides no part of the system, such as /scratch or /mnt/scratch",
    ),
    "scratch_name": Sentence(
        "scratch_name is {subject}",
        "give letters, digits, _ and -, at most 31, but not mdN, which the kernel assigns itself",
    ),
    "scratch_mode": Sentence("scratch_mode is {subject}", "give four octal digits in quotes, such as '0755'"),
    "scratch_chunk": Sentence("scratch_chunk_kib is {subject}", "give a power of two of at least 4"),
    "scratch_negative": Sentence("{subject} is {value}", "give 0 or a larger number"),
    "scratch_refused": Sentence(
        "scratch_mount_options has {subject}, which is refused",
        "remove it",
        why="{reason}; {source}",
    ),
    "scratch_no_option": Sentence(
        "scratch_mount_options has {subject}, which is not a single option",
        "give each as an entry of its own",
    ),
}
