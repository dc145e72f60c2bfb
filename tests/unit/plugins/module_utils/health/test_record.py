# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is recorded of a machine gives the same facts and the same verdict elsewhere."""

import ctypes
import json
import os
import re

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health.examination import (
    Places,
    examine,
    examine_and_record,
    reduce_file,
    reduce_log,
)
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.gpu_node import measure
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.recording import Recording
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines, recording
from ansible_collections.allreduce.gpu.tests.lab.nvml.drive_faults import drives, smart_log
from ansible_collections.allreduce.gpu.tests.lab.nvml.fault import Fault
from ansible_collections.allreduce.gpu.tests.lab.nvml.faults import faults
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.health_helper import LIMITS, persistent

# What changes while it is asked cannot be recorded: GPUs that are lost meanwhile.
SAMPLE = [
    one for one in faults() if not re.search("after|no library|another library|internal error|no permission", one.name)
]
CASES = [*(Fault(make.__name__, make(), "ok") for make in machines.MACHINES), *SAMPLE[::3]]


class Machine:
    """A simulated machine, and what was recorded of it."""

    def __init__(self, place, library, monkeypatch):
        self.place, self.library, self.monkeypatch = place, str(library), monkeypatch

    def at(self, place):
        """The places of a machine, which the library then answers for."""
        ctypes.CDLL(self.library).simulated_reset()
        self.monkeypatch.setenv("SIMULATED_NVML", str(place / "profile"))
        trees = [FileTree(str(place / name)) for name in ("sys", "proc", "root")]
        return Places(*trees, library=self.library, log=str(place / "kmsg"))


@pytest.fixture
def machine(tmp_path, library, monkeypatch):
    return Machine(tmp_path, library, monkeypatch)


@pytest.mark.parametrize("case", CASES, ids=lambda one: one.name)
def test_a_recorded_machine_is_judged_as_the_machine_was(machine, case):
    here, there = machine.place / "here", machine.place / "there"
    here.mkdir()
    recording.record(persistent(case.machine), here)
    if case.log is not None:
        (here / "kmsg").write_text(case.log)
    options = {**LIMITS, "gpu_count": len(case.machine.gpus), **case.limits}
    first = examine_and_record(machine.at(here), options, str(there))
    assert first == examine(machine.at(here), options), "recording changes nothing"
    assert examine(machine.at(there), options) == first
    nodes = [measure(places.sys, places.proc, places.library, ()) for places in (machine.at(here), machine.at(there))]
    assert nodes[0] == nodes[1]


def test_what_is_read_of_a_recording_is_all_there(machine):
    """The fixture has the layout that recording.py writes."""
    here = machine.place / "here"
    here.mkdir()
    recording.record(machines.dgx_a100(), here)
    place = machine.place / "there"
    found = Recording(str(place))
    node = measure(
        found.tree("sys", str(here / "sys")),
        found.tree("proc", str(here / "proc")),
        machine.at(here).library,
        (),
        found.opener,
    )
    found.finish(node)
    assert {"sys", "proc", "profile"} == set(os.listdir(place))
    assert os.stat(place).st_mode & 0o077 == 0
    links = [path for path in (place / "sys").rglob("*") if path.is_symlink()]
    assert links and all(not os.path.isabs(os.readlink(path)) for path in links)


@pytest.mark.parametrize("there", ["file", "directory"])
def test_what_is_there_is_left_alone(tmp_path, there):
    place = tmp_path / "record"
    if there == "file":
        place.touch()
    else:
        (place / "a").mkdir(parents=True)
    with pytest.raises(ValueError, match="not an empty directory"):
        Recording(str(place))


def test_secrets_of_the_host_stay_there():
    text = "[Service]\nEnvironment=NCCL_DEBUG=INFO\nEnvironment=TOKEN=1\n[ -f x ] && export TOKEN=1"
    assert reduce_file("/etc/systemd/system/a.service", text) == "[Service]\nEnvironment=NCCL_DEBUG=INFO"
    assert reduce_file("/run/systemd/sessions/7", "USER=me\nSTATE=active") == "STATE=active"


@pytest.mark.parametrize(("log", "kept"), [
    (None, None),
    ("6,0,1,-;Linux version\n6,1,1,-;usb 1-1: serial 4711\n3,2,1,-;NVRM: Xid (PCI:0000:14:00): 79\n",
     "6,0,1,-;\n3,2,1,-;NVRM: Xid (PCI:0000:14:00): 79\n"),
    ("[ 1.0] usb 1-1: serial 4711\n[ 2.0] NVRM: x\n", "[ 2.0] NVRM: x\n"),
])  # fmt: skip
def test_of_the_log_only_what_is_judged_is_kept(log, kept):
    assert reduce_log(log) == kept


def test_the_clock_is_recorded(machine):
    here = machine.place / "here"
    here.mkdir()
    recording.record(
        machines.a40_pcie().with_files({"proc/adjtimex.json": '{"state": 0, "status": 1, "offset": 60000}\n'}), here
    )
    (here / "kmsg").touch()
    examine_and_record(machine.at(here), LIMITS, str(machine.place / "there"))
    assert json.loads((machine.place / "there" / "proc" / "adjtimex.json").read_text())["offset"] == 60000


def test_what_drives_say_is_recorded(machine):
    here, there = machine.place / "here", machine.place / "there"
    here.mkdir()
    recording.record(machines.a40_pcie().with_files(drives(nvme0=smart_log(0x01), nvme1=("permission",))), here)
    (here / "kmsg").touch()
    first = examine_and_record(machine.at(here), LIMITS, str(there))
    assert {one["check"] for one in first["findings"]} >= {"nvme_health"}
    assert examine(machine.at(there), LIMITS) == first
