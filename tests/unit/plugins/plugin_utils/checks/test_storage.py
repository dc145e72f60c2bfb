# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Declared file systems against what is mounted: each difference fails by itself, and what was not asked is not known."""

from dataclasses import fields
from pathlib import Path

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.storage import Declared, checks
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import DocumentError

DECLARED = {"path": "/data", "type": "nfs4", "min_free_gb": 100}
GB = 10**9
MOUNT = {"type": "nfs4", "source": "nfs-1:/data", "fault": None, "free": 200 * GB, "size": 900 * GB, "writable": True}


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
        ({"fault": "silent", "free": None, "writable": None}, {}, "nfs4 of nfs-1:/data does not answer within 5 s"),
        ({"fault": "ESTALE", "free": None, "writable": None}, {}, "nfs4 of nfs-1:/data answers with ESTALE"),
        ({"writable": False}, {}, "the training user may not write there"),
        ({"free": GB}, {}, "1 GB are free"),
        ({"free": GB, "writable": False}, {}, "the training user may not write there; 1 GB are free"),
    ],
)
def test_each_difference_fails(mount, declared, measured):
    found = checked(mount and {**MOUNT, **mount}, **declared)
    assert (found["status"], found["measured"]) == ("failed", measured)
    assert found["reason"]


def test_a_path_that_is_not_absolute_is_told():
    (found,) = checks([{"path": "data"}], {"mounts": {"data": None}})
    assert (found["status"], found["measured"]) == ("failed", "the path is not absolute")


@pytest.mark.parametrize("writable", [False, "no", "false"])
def test_values_are_converted_as_ansible_does(writable):
    assert (
        checked({**MOUNT, "free": 99 * GB, "writable": False}, writable=writable, min_free_gb="99")["status"]
        == "passed"
    )


def test_defaults_are_those_of_the_argument_specification():
    path = Path(__file__).parents[5] / "roles" / "verify" / "meta" / "argument_specs.yml"
    specification = yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"]["main"]["options"]
    options = specification["verify_storage_mounts"]["options"]
    assert {one.name: one.default for one in fields(Declared) if one.name != "path"} == {
        name: option.get("default") for name, option in options.items() if not option.get("required")
    }


def test_what_nobody_declared_is_not_asked_for():
    plain = {"type": None, "min_free_gb": 0.0, "writable": False}
    assert checked({**MOUNT, "type": "lustre", "free": 0, "writable": False}, **plain)["status"] == "passed"


@pytest.mark.parametrize("probe", [None, {}, {"mounts": {}}])
def test_what_was_not_asked_is_not_known(probe):
    (found,) = checks([DECLARED], probe)
    assert found["status"] == "unknown"


@pytest.mark.parametrize("mounts", [[], {"/data": 5}, {"/data": {"free": "much"}}, {"/data": {"fault": 5}}])
def test_an_answer_of_another_shape_is_refused(mounts):
    with pytest.raises(DocumentError):
        list(checks([DECLARED], {"mounts": mounts}))
