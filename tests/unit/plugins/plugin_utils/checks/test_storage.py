# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Declared file systems against what is mounted: each difference fails by itself, and what was not asked is not known."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.storage import checks
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import DocumentError

DECLARED = {"path": "/data", "type": "nfs4", "min_free_gb": 100}
MOUNT = {
    "type": "nfs4",
    "source": "nfs-1:/data",
    "silent": False,
    "error": None,
    "free": 200e9,
    "size": 900e9,
    "writable": True,
}
MOUNT = {**MOUNT, "free": int(MOUNT["free"]), "size": int(MOUNT["size"])}


def checked(mount, **declared):
    (found,) = checks([{**DECLARED, **declared}], {"mounts": {"/data": mount}})
    return found


def test_one_as_declared():
    found = checked(MOUNT)
    assert (found["name"], found["status"]) == ("storage_mount /data", "passed")
    assert found["measured"] == "nfs4 of nfs-1:/data, 200 GB free of 900 GB"
    assert found["expected"] == "nfs4 that the training user may write to, 100 GB free"


@pytest.mark.parametrize(
    ("mount", "declared", "measured"),
    [
        (None, {}, "nothing is mounted there"),
        ({"type": "ext4", "source": "/dev/sda1"}, {}, "ext4 of /dev/sda1 is mounted there"),
        ({"silent": True, "free": None, "writable": None}, {}, "nfs4 of nfs-1:/data does not answer within 5 s"),
        ({"error": "ESTALE", "free": None, "writable": None}, {}, "nfs4 of nfs-1:/data answers with ESTALE"),
        ({"writable": False}, {}, "the training user may not write there"),
        ({"free": 10**9}, {}, "1 GB are free"),
        ({"free": 10**9, "writable": False}, {}, "the training user may not write there; 1 GB are free"),
    ],
)
def test_each_difference_fails(mount, declared, measured):
    found = checked(mount and {**MOUNT, **mount}, **declared)
    assert (found["status"], found["measured"]) == ("failed", measured)
    assert found["reason"]


def test_what_nobody_declared_is_not_asked_for():
    plain = {"type": None, "min_free_gb": 0.0, "writable": False}
    assert checked({**MOUNT, "type": "lustre", "free": 0, "writable": False}, **plain)["status"] == "passed"


@pytest.mark.parametrize("probe", [None, {}, {"mounts": {}}])
def test_what_was_not_asked_is_not_known(probe):
    (found,) = checks([DECLARED], probe)
    assert found["status"] == "unknown"


@pytest.mark.parametrize("mounts", [[], {"/data": 5}, {"/data": {"free": "much"}}, {"/data": {"silent": "no"}}])
def test_an_answer_of_another_shape_is_refused(mounts):
    with pytest.raises(DocumentError):
        list(checks([DECLARED], {"mounts": mounts}))
