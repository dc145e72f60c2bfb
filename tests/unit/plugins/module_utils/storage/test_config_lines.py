# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One line of ours in a file of others: there once, gone without a trace."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.storage.config_lines import (
    MARK,
    array_entry,
    arrays_of_others,
    fstab_entry,
    mounts_of_others,
    with_line,
)

RECORD = {
    "mount_point": "/my scratch",
    "filesystem": "00000002-0000-4000-8000-000000000000",
    "array": {"name": "scratch", "uuid": "a26bf396-3138-9f83-0df1-722df404fe4c", "chunk_kib": 512},
}


def test_the_lines():
    assert fstab_entry(RECORD, ["noatime", "nofail"]) == (
        "UUID=00000002-0000-4000-8000-000000000000 /my\\040scratch xfs noatime,nofail 0 0"
    )
    assert array_entry(RECORD) == "ARRAY /dev/md/scratch metadata=1.2 UUID=a26bf396:31389f83:0df1722d:f404fe4c"


def test_a_file_without_an_end_of_line():
    assert with_line("a b", "x y z", ["x", "y"]) == f"a b\n{MARK}\nx y z\n"
    assert with_line(None, "x y z", ["x", "y"]) == f"{MARK}\nx y z\n"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("/dev/sdb1 /my\\040scratch ext4 defaults 0 2", ["/dev/sdb1"]),
        ("# /dev/sdb1 /my\\040scratch ext4 defaults 0 2", []),
        (fstab_entry(RECORD, ["ro"]), []),
        ("/dev/sdb1 /my\\040scratch2 ext4 defaults 0 2", []),
    ],
)
def test_mounts_of_others(line, found):
    assert mounts_of_others("\n" + line + "\n", RECORD) == found


def test_arrays_of_others():
    line = "ARRAY /dev/md/scratch UUID=1:2:3:4"
    assert arrays_of_others(f"DEVICE partitions\n{line}\n", RECORD) == [line]
    assert arrays_of_others(f"{MARK}\n{line}\n", RECORD) == [] == arrays_of_others(None, RECORD)
    assert arrays_of_others("ARRAY /dev/md/data UUID=1:2:3:4\n", RECORD) == []
