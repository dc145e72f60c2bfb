# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ATA drives: what smartctl says of them, when it is asked, and what is found. No test here asks a real drive."""

import json
import os

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health import ata, ata_log
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree

CLOCK = {"now": 1e9, "uptime": 5000.0}
NAMES = {5: "Reallocated_Sector_Ct", 197: "Current_Pending_Sector", 198: "Offline_Uncorrectable"}


def said(passed=True, failing=(), exit_status=0, **raw):
    """What smartctl 7 writes of a drive; raw: _197=3 is the raw value of attribute 197."""
    values = {number: raw.get(f"_{number}", 0) for number in NAMES}
    table = [
        {"id": number, "name": NAMES[number], "value": 100, "worst": 100, "thresh": 10,
         "when_failed": "now" if number in failing else "", "flags": {"value": 51, "prefailure": number == 5},
         "raw": {"value": value, "string": str(value)}}
        for number, value in values.items()
    ]  # fmt: skip
    return json.dumps({"json_format_version": [1, 0], "smartctl": {"version": [7, 3], "exit_status": exit_status},
                       "device": {"name": "/dev/sda", "type": "sat", "protocol": "ATA"}, "smart_status": {"passed": passed},
                       "ata_smart_attributes": {"revision": 16, "table": table}})  # fmt: skip


# As smartctl 7.3 says it of a device that is not a disk.
NO_DISK = '{"smartctl": {"exit_status": 1, "messages": [{"string": "/dev/null: Unable to detect device type", "severity": "error"}]}}'


class Disks:
    """Recorded trees with disks of both kinds, and a program in smartctl's place that writes down each question."""

    def __init__(self, place):
        self.place, self.sys, self.root = place, FileTree(str(place / "sys")), FileTree(str(place / "root"))
        for name, vendor in (("sda", "ATA"), ("sdb", "ATA"), ("sdc", "SEAGATE"), ("nvme0n1", "ATA")):
            self.write(f"sys/block/{name}/device/vendor", f"{vendor}     \n")

    def write(self, name, text):
        path = self.place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def install(self, answer, before=""):
        program = self.write(
            "root/usr/sbin/smartctl",
            f"#!/bin/sh\n{before}\necho \"$@\" >> {self.place}/asked\ncat <<'END'\n{answer}\nEND\n",
        )
        program.chmod(0o755)

    @property
    def asked(self):
        return (self.place / "asked").read_text().splitlines()


@pytest.fixture
def disks(tmp_path):
    return Disks(tmp_path)


def found(text, **limits):
    reading = {"tool": True, "drives": {"sda": ata_log.parse(text)}}
    entries, dummy = ata.follow({}, reading, CLOCK, {"max_bad_sectors": 0, **limits})
    return [
        (one["fault"], one["severity"], one["measured"], one["subject"])
        for entry in entries
        for one in entry["findings"]
    ]


@pytest.mark.parametrize(("text", "limits", "expected"), [
    (said(), {}, []),
    (said(False, exit_status=8), {}, [("failing", "degraded", "its self-test says that it is failing", "sda")]),
    (said(failing=(5,), exit_status=16), {}, [("attribute", "degraded", "at their threshold: Reallocated_Sector_Ct", "sda")]),
    (said(_197=3, _198=2), {}, [("sectors", "degraded", "3 sectors that cannot be read", "sda")]),
    (said(_198=2), {}, [("sectors", "degraded", "2 sectors that cannot be read", "sda")]),
    (said(_197=3), {"max_bad_sectors": 3}, []),
    (said(_5=900), {}, []),
    (NO_DISK, {}, [("silent", "unknown", "not known (/dev/null: Unable to detect device type)", "sda")]),
    ("smartctl 6.6\n", {}, [("silent", "unknown", "not known (no JSON)", "sda")]),
    ("", {}, [("silent", "unknown", "not known (no JSON)", "sda")]),
    ('{"smart_status": {}}', {}, [("silent", "unknown", "not known (no status)", "sda")]),
])  # fmt: skip
def test_a_drive(text, limits, expected):
    assert found(text, **limits) == expected


def test_only_ata_drives_are_asked(disks):
    disks.install(said())
    reading = ata_log.read_ata(disks.sys, disks.root)
    assert reading["tool"] and {name: drive["passed"] for name, drive in reading["drives"].items()} == {
        "sda": True,
        "sdb": True,
    }
    assert disks.asked == [f"--json=c --health --attributes /dev/{name}" for name in ("sda", "sdb")]


def test_without_smartctl_nothing_is_known(disks):
    reading = ata_log.read_ata(disks.sys, disks.root)
    assert reading == {"tool": False, "drives": {"sda": None, "sdb": None}}
    entries, after = ata.follow({}, reading, CLOCK, {"max_bad_sectors": 0})
    assert [(entry["check"], entry["measured"], entry["findings"]) for entry in entries] == [("ata_health", None, [])]
    assert after["at"] == CLOCK["uptime"]


def test_one_drive_is_asked_for_its_health_and_attributes(disks):
    disks.install(said(False, failing=(5,), _197=2))
    drive = ata_log.ask(str(disks.place / "root" / "usr" / "sbin" / "smartctl"), "sda")
    assert drive == {"passed": False, "failing": ["Reallocated_Sector_Ct"], "sectors": 2, "refused": None}
    assert disks.asked == ["--json=c --health --attributes /dev/sda"]


@pytest.mark.parametrize(("text", "expected"), [
    ("{", {"passed": None, "failing": [], "sectors": 0, "refused": "no JSON"}),
    ('{"smart_status": {"passed": true}}', {"passed": True, "failing": [], "sectors": 0, "refused": None}),
    ('{"smart_status": {"passed": true}, "ata_smart_attributes": {"table": [{"id": 197}, {"id": 198, "raw": {"value": 1}}]}}',
     {"passed": True, "failing": [], "sectors": 1, "refused": None}),
])  # fmt: skip
def test_what_a_drive_says(text, expected):
    assert ata_log.parse(text) == expected


def test_what_is_judged(disks):
    reading = {"tool": True, "drives": {"sdb": ata_log.parse(said(False)), "sda": ata_log.parse(said(False, _197=4))}}
    (entry,), after = ata.follow({}, reading, CLOCK, {"max_bad_sectors": 3})
    assert (entry["check"], entry["expected"], entry["measured"]) == ("ata_health", "well", "2 well")
    told = [(one["subject"], one["check"], one["expected"], one["fault"]) for one in entry["findings"]]
    assert told == [
        ("sda", "ata_health", "well", "failing"),
        ("sda", "ata_health", "at most 3 sectors", "sectors"),
        ("sdb", "ata_health", "well", "failing"),
    ]
    assert after == {**reading, "at": CLOCK["uptime"]}


def test_a_drive_that_hangs_is_not_waited_for(disks, monkeypatch):
    monkeypatch.setattr(ata_log, "SECONDS", 0.5)
    disks.install(said(), "case $4 in *sdb) sleep 2;; esac")
    drives = ata_log.read_ata(disks.sys, disks.root)["drives"]
    assert (drives["sda"]["refused"], drives["sdb"]["refused"]) == (None, "no answer")


def test_a_node_without_ata_drives_is_not_judged(tmp_path):
    empty = FileTree(str(tmp_path))
    assert ata.follow({}, ata_log.read_ata(empty, empty), CLOCK, {"max_bad_sectors": 0})[0] == []


def test_what_was_said_counts_until_the_next_answer():
    known = {"at": 1.0, "tool": True, "drives": {"sda": ata_log.parse(said(False))}}
    entries, after = ata.follow(known, None, CLOCK, {"max_bad_sectors": 0})
    assert len(entries[0]["findings"]) == 1 and after == known


@pytest.mark.parametrize(("at", "due"), [(None, True), (4999, False), (1401, False), (1400, True), (6000, True)])
def test_drives_are_asked_once_an_hour(at, due):
    assert ata_log.is_due({} if at is None else {"at": at}, CLOCK["uptime"]) is due


@pytest.mark.skipif(not os.access(ata_log.SMARTCTL, os.X_OK), reason="no smartctl on this machine")
def test_the_real_program_says_what_is_no_disk():
    assert ata_log.ask(ata_log.SMARTCTL, "null")["refused"].startswith("/dev/null: ")
