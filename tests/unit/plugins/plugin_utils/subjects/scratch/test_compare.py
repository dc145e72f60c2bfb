# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scratch against what is declared: what verify says."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.drift import checks
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Comparison, Remedy, Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.scratch.answer import SUBJECT
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.scratch.compare import (
    compare_unmeasured,
    compare_unwanted,
)

from tests.support.subjects import compared

PRESENT = {"scratch_state": "present", "scratch_owner": "trainer"}
MOUNTED = {
    "source": "/dev/md127", "type": "xfs", "options": ["noatime", "rw"], "ours": True, "owner": "trainer:trainer", "mode": "0755",
}  # fmt: skip
FACT = {
    "container": False, "recorded": True, "left": None, "refused": [], "expected": 2, "array": "/dev/md/scratch",
    "members": ["/dev/nvme0n1", "/dev/nvme1n1"], "device": "/dev/md127", "mounted": MOUNTED, "trim": True,
}  # fmt: skip


def judged(fact, **variables):
    found = list(checks(compared(SUBJECT, {**PRESENT, **variables}, {"gpu_scratch": fact})))
    return {one["name"]: one for one in found}


def failed(found):
    """{name: why, and what to do}."""
    return {name: f"{one['reason']}; {one['fix']}" for name, one in found.items() if one["status"] != "passed"}


def test_as_declared():
    found = judged(FACT)
    assert set(found) == {"scratch_members", "scratch_mount", "scratch_options", "scratch_owner", "scratch_trim"}
    assert failed(found) == {}


@pytest.mark.parametrize(
    ("change", "variables", "name", "words"),
    [
        ({"members": []}, {}, "scratch_members", "/dev/md/scratch is missing; run site again"),
        ({"members": ["/dev/nvme0n1"]}, {}, "scratch_members", "/dev/md/scratch is /dev/nvme0n1 instead of 2 disks"),
        ({"mounted": None}, {}, "scratch_mount", "/scratch is missing; run site again"),
        ({"mounted": {**MOUNTED, "ours": False}}, {}, "scratch_mount", "nothing is wiped"),
        ({"mounted": {**MOUNTED, "options": ["rw", "relatime"]}}, {}, "scratch_options", "instead of noatime"),
        ({"mounted": {**MOUNTED, "owner": "root:root"}}, {}, "scratch_owner", "root:root 0755 instead of trainer 0755"),
        ({"mounted": {**MOUNTED, "mode": "0777"}}, {}, "scratch_owner", "0777"),
        ({}, {"scratch_group": "ml"}, "scratch_owner", "instead of trainer:ml"),
        ({"trim": False}, {}, "scratch_trim", "fstrim.timer is disabled instead of enabled"),
        (
            {
                "refused": [
                    {"code": "partition_table", "subject": "/dev/nvme0n1", "detail": {"type": "gpt", "offset": 512}}
                ]
            },
            {},
            "scratch_disks",
            "/dev/nvme0n1 has a partition table (gpt at 512)",
        ),
    ],
)
def test_what_differs(change, variables, name, words):
    found = failed(judged({**FACT, **change}, **variables))
    assert list(found) == [name] and words in found[name]


@pytest.mark.parametrize(("change", "variables"), [({"trim": None}, {}), ({"trim": False}, {"scratch_trim": False})])
def test_no_timer_to_compare(change, variables):
    assert "scratch_trim" not in judged({**FACT, **change}, **variables)


@pytest.mark.parametrize("left", ["container", "none_blank"])
def test_a_node_that_gets_none(left):
    found = judged({"left": left, "recorded": False})
    assert failed(found) == {} and found["scratch_disks"]["measured"].startswith("none: ")


def test_a_lost_scratch_is_no_node_without_disks():
    """Where one was made, a node without blank disks has lost it."""
    assert failed(judged({"left": "none_blank", "recorded": True, "expected": 2})) != {}


def test_not_measured():
    found = {one["name"]: one["status"] for one in checks(compared(SUBJECT, PRESENT, {}))}
    assert found == {"scratch_mount": "unknown"}


@pytest.mark.parametrize(("recorded", "statuses"), [(False, []), (True, ["failed"])])
def test_not_wanted(recorded, statuses):
    facts = {"gpu_node_state": {"records": ["scratch"] if recorded else []}}
    assert [one["status"] for one in checks(compared(SUBJECT, {}, facts))] == statuses


DISKS = FACT["members"]


def whole(fact, **variables):
    """The comparisons as (subject, desired, observed, status, remedy, kind)."""
    found = compared(SUBJECT, {**PRESENT, **variables}, {"gpu_scratch": fact})
    assert {one.component for one in found} == {"scratch"}
    return [(one.subject, one.desired, one.observed, one.status.value, one.remedy.value, one.kind) for one in found]


@pytest.mark.parametrize(
    ("change", "variables", "row"),
    [
        ({}, {}, ("/dev/md/scratch", "2 disks", ", ".join(DISKS), "as_planned", "none", "members")),
        ({"expected": 1, "members": DISKS[:1], "array": None}, {}, ("disk", "1 disk", DISKS[0], "as_planned", "none", "members")),
        ({"members": DISKS[:1]}, {}, ("/dev/md/scratch", "2 disks", DISKS[0], "differs", "apply", "members")),
        ({"members": [*DISKS, "/dev/sdb"]}, {}, ("/dev/md/scratch", "2 disks", ", ".join([*DISKS, "/dev/sdb"]), "differs", "apply", "members")),
        ({"expected": 0, "members": []}, {}, ("/dev/md/scratch", "0 disks", "", "missing", "apply", "members")),
        ({}, {}, ("/scratch", "the recorded XFS", "xfs of /dev/md127", "as_planned", "none", "mount")),
        ({"mounted": None}, {}, ("/scratch", "the recorded XFS", "", "missing", "apply", "mount")),
        ({"mounted": {**MOUNTED, "ours": False}}, {}, ("/scratch", "the recorded XFS", "xfs of /dev/md127", "differs", "disks", "mount")),
        ({}, {}, ("options of /scratch", "noatime", "noatime,rw", "as_planned", "none", "options")),
        ({"mounted": {**MOUNTED, "options": ["rw"]}}, {}, ("options of /scratch", "noatime", "rw", "differs", "apply", "options")),
        ({}, {}, ("owner of /scratch", "trainer 0755", "trainer:trainer 0755", "as_planned", "none", "owner")),
        ({}, {"scratch_group": "trainer"}, ("owner of /scratch", "trainer:trainer 0755", "trainer:trainer 0755", "as_planned", "none", "owner")),
        ({"mounted": {**MOUNTED, "owner": None}}, {}, ("owner of /scratch", "trainer 0755", "None 0755", "differs", "apply", "owner")),
        ({}, {}, ("fstrim.timer", "enabled", "enabled", "as_planned", "none", "trim")),
        ({"trim": False}, {}, ("fstrim.timer", "enabled", "disabled", "differs", "apply", "trim")),
    ],
)  # fmt: skip
def test_each_comparison_is_whole(change, variables, row):
    assert row in whole({**FACT, **change}, **variables)


def test_a_refusal_is_told_alone():
    refused = [{"code": "partition_table", "subject": "/dev/nvme0n1", "detail": {"type": "gpt", "offset": 512}}] * 2
    (found,) = whole({**FACT, "refused": refused})
    assert found[:2] == ("/scratch", "a scratch") and found[3:] == ("differs", "disks", "disks")
    assert found[2].count("; /dev/nvme0n1 has a partition table") == 1


def test_a_node_without_blank_disks_is_as_planned():
    (found,) = whole({"left": "none_blank", "recorded": False})
    assert (found[0], *found[3:]) == ("/scratch", "as_planned", "none", "disks")
    assert found[1] == found[2] and found[1].startswith("none: ")


def test_disks_that_were_not_examined():
    assert compare_unmeasured("/s") == [
        Comparison("scratch", "/s", "mounted", "", Status.UNKNOWN, Remedy.MEASURE, "mount")
    ]


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        (False, []),
        (True, [Comparison("scratch", "/s", "no scratch", "a scratch", Status.UNWANTED, Remedy.APPLY, "mount")]),
    ],
)
def test_a_node_that_is_to_have_no_scratch(recorded, expected):
    assert compare_unwanted(recorded, "/s") == expected
