# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What users ask for of the scratch, and what of it is refused before a disk is looked at."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.scratch.answer import SUBJECT
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.scratch.request import (
    problems,
    refused,
    request,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.sentences import describe

from tests.support.subjects import decided

ROOT = Path(__file__).resolve().parents[6]


def codes(**variables):
    found = list(problems(request(variables)))
    values = [one for value in variables.values() for one in (value if isinstance(value, list) else [value])]
    assert all(len(describe(one)) > 40 and one.subject in {*variables, *map(str, values)} for one in found)
    return [one.code for one in found]


def test_the_defaults():
    assert request({}).present is False and request({"scratch_state": "present"}).present is True
    assert request({}).owner == "trainer" and request({"cluster_ssh_user": "ml"}).owner == "ml"


def test_options_of_the_modules():
    """Each option of the request is one of the module's, with the same default where that is not a user's choice."""
    asked = {"scratch_disks": ["/dev/nvme0n1"], "scratch_trim": "false"}
    found = decided(SUBJECT, asked, {"gpu_scratch": {"packages": ["xfsprogs"]}})
    source = (ROOT / "plugins/modules/scratch.py").read_text(encoding="utf-8")
    options = yaml.safe_load(source.split('DOCUMENTATION = r"""')[1].split('"""')[0])["options"]
    assert set(found["plan"]) | {"state", "destroy_data"} == set(options)
    assert found["plan"]["disks"] == ["/dev/nvme0n1"] and found["plan"]["trim"] is False
    assert SUBJECT.question(asked) == {
        "disks": ["/dev/nvme0n1"],
        "count": 0,
        "minimum_gb": 0,
        "mount_point": "/scratch",
    }
    assert (found["problems"], found["packages"]) == ([], ["xfsprogs"])


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("disks", ["/dev/nvme0n1", "/dev/disk/by-id/nvme-A_1"], []),
        ("disks", ["/dev/nvme*"], ["scratch_no_path"]),
        ("disks", ["/dev/nvme[01]n1"], ["scratch_no_path"]),
        ("disks", ["nvme0n1"], ["scratch_no_path"]),
        ("disks", ["/dev/../etc/passwd"], ["scratch_no_path"]),
        ("mount_point", "/mnt/scratch", []),
        ("mount_point", "/home/scratch", []),
        ("mount_point", "/", ["scratch_mount_point"]),
        ("mount_point", "/home", ["scratch_mount_point"]),
        ("mount_point", "/var", ["scratch_mount_point"]),
        ("mount_point", "/etc/scratch", ["scratch_mount_point"]),
        ("mount_point", "scratch", ["scratch_mount_point"]),
        ("mount_point", "/scratch/", ["scratch_mount_point"]),
        ("mount_point", "/a/../etc", ["scratch_mount_point"]),
        ("mount_point", "//scratch", ["scratch_mount_point"]),
        ("mount_point", "/a\nb", ["scratch_mount_point"]),
        ("name", "fast-1", []),
        ("name", "md127", ["scratch_name"]),
        ("name", "a b", ["scratch_name"]),
        ("name", "", ["scratch_name"]),
        ("mode", "0755", []),
        ("mode", "755", ["scratch_mode"]),
        ("mode", "u=rwx", ["scratch_mode"]),
        ("chunk_kib", 64, []),
        ("chunk_kib", 4, []),
        ("chunk_kib", 5, ["scratch_chunk"]),
        ("chunk_kib", 100, ["scratch_chunk"]),
        ("chunk_kib", 2, ["scratch_chunk"]),
        ("disk_count", -1, ["scratch_negative"]),
        ("min_size_gb", -1, ["scratch_negative"]),
        ("mount_options", ["noatime", "lazytime", "x-systemd.device-timeout=10s"], []),
        ("mount_options", ["discard"], ["scratch_refused"]),
        ("mount_options", ["nobarrier"], ["scratch_refused"]),
        ("mount_options", ["noatime,nodev"], ["scratch_no_option"]),
        ("mount_options", ["no atime"], ["scratch_no_option"]),
    ],
)
def test_refused(name, value, expected):
    assert codes(**{"scratch_" + name: value}) == expected


def test_the_table_has_reasons_and_sources():
    assert len({row.name for row in refused()}) == len(refused()) > 3
    assert all(row.reason and row.source for row in refused())
