# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program of role health on simulated machines: what it writes, what it knows in the next run, and a driver that hangs."""

import ctypes
import json
import os
import shutil
import time

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health import health_program, program_options
from ansible_collections.allreduce.gpu.plugins.module_utils.health.examination import Places
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines, recording
from ansible_collections.allreduce.gpu.tests.lab.nvml.fault import said, xid
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.health_helper import persistent


class Node:
    """A simulated machine with the program's files."""

    def __init__(self, place, library):
        self.place, self.library = place, str(library)
        (place / "textfile").mkdir()
        self.declare()

    def declare(self, **options):
        options = {"textfile_directory": str(self.place / "textfile"), **options}
        (self.place / "health.json").write_text(json.dumps(options))

    def look(self, machine, log=""):
        for name in ("sys", "proc", "root"):
            shutil.rmtree(self.place / name, ignore_errors=True)
        recording.record(persistent(machine), self.place)
        (self.place / "kmsg").write_text(log)

    def run(self, *arguments):
        trees = [FileTree(str(self.place / name)) for name in ("sys", "proc", "root")]
        places = Places(*trees, library=self.library, log=str(self.place / "kmsg"))
        return health_program.main(list(arguments), places, str(self.place / "health.json"), str(self.place / "state"))

    @property
    def document(self):
        return json.loads((self.place / "state" / "health.json").read_text())

    @property
    def metrics(self):
        return (self.place / "textfile" / "allreduce_health.prom").read_text().splitlines()

    def examine(self, machine, log=""):
        self.look(machine, log)
        assert self.run() == 0
        return self.document


@pytest.fixture
def node(tmp_path, library, monkeypatch):
    ctypes.CDLL(str(library)).simulated_reset()
    monkeypatch.setenv("SIMULATED_NVML", str(tmp_path / "profile"))
    return Node(tmp_path, library)


def test_a_healthy_node(node):
    document = node.examine(machines.hgx_h100())
    assert (document["verdict"], document["action"], document["findings"]) == ("ok", "none", [])
    assert (document["gpus_expected"], document["gpus_answering"], len(document["gpus"])) == (8, 8, 8)
    assert abs(document["timestamp"] - time.time()) < 60
    assert 'allreduce_health_verdict{verdict="ok"} 1' in node.metrics
    assert len([line for line in node.metrics if line.startswith("DCGM_FI_DEV_POWER_USAGE{")]) == 8


def test_what_a_check_finds_is_told_with_its_action(node):
    machine = machines.hgx_h100()
    document = node.examine(machine, xid(79, machine, 2))
    assert (document["verdict"], document["action"]) == ("failed", "reboot")
    (finding,) = document["findings"]
    assert (finding["check"], finding["subject"]) == ("xid", "GPU2")
    assert 'allreduce_health_finding{code="xid",subject="GPU2",severity="failed",action="reboot"} 1' in node.metrics
    assert (
        len([line for line in node.metrics if line.startswith("DCGM_FI_DEV_XID_ERRORS{") and line.endswith(" 79")]) == 1
    )


def test_a_finding_keeps_the_time_of_its_first_run(node, monkeypatch):
    machine = machines.hgx_h100()
    since = node.examine(machine, xid(79, machine, 2))["findings"][0]["since"]
    monkeypatch.setattr(health_program.time, "time", lambda: since + 500.0)
    assert node.examine(machine, xid(79, machine, 2))["findings"][0]["since"] == since


def test_a_lost_gpu_is_missing_in_the_numbers(node):
    document = node.examine(machines.hgx_h100().change(5, failing=(15, 30)))
    assert (document["gpus_expected"], document["gpus_answering"]) == (8, 7)
    assert document["verdict"] == "failed"


def test_a_driver_that_hangs_is_unknown_and_bounded(node):
    node.declare(seconds=1)
    began = time.time()
    document = node.examine(said(machines.a40_pcie(), 1, ("hanging", "30")))
    assert time.time() - began < 10
    assert (document["verdict"], [one["check"] for one in document["findings"]]) == ("unknown", ["nvml"])
    assert document["action"] == "monitor", "what is unknown never condemns a node"
    assert 'allreduce_health_verdict{verdict="unknown"} 1' in node.metrics


def test_a_process_that_hangs_is_not_joined_by_another(node):
    node.examine(machines.a40_pcie())
    fields = ["S", *["0"] * 18, "4711", "0"]
    (node.place / "proc" / "77").mkdir()
    (node.place / "proc" / "77" / "stat").write_text("77 (a b) c) " + " ".join(fields) + "\n")
    path = node.place / "state" / "state.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "stuck": {"pid": 77, "start": "4711"}}))
    assert node.run() == 0 and node.document["verdict"] == "unknown"
    (node.place / "proc" / "77" / "stat").write_text("77 (a b) c) " + " ".join(["Z", *fields[1:]]) + "\n")
    assert node.run() == 0 and node.document["verdict"] == "ok"


def test_what_crashes_is_unknown(node, monkeypatch):
    def crash(*dummy, **dummies):
        raise TypeError("x")

    monkeypatch.setattr(health_program.examination, "read", crash)
    document = node.examine(machines.a40_pcie())
    assert (document["verdict"], document["findings"][0]["measured"]) == ("unknown", "TypeError: x")


def test_a_port_that_dropped_is_not_trusted_at_once(node):
    machine = machines.dgx_a100()
    port = node.place / "sys" / "class" / "infiniband" / machine.nics[0].name / "ports" / "1" / "state"
    node.examine(machine)
    assert "nic_links" in {one["check"] for one in node.document["judged"]}
    port.write_text("1: DOWN\n")
    assert node.run() == 0 and node.document["verdict"] == "failed"
    port.write_text("4: ACTIVE\n")
    assert node.run() == 0
    assert [(one["check"], one["subject"]) for one in node.document["findings"]] == [
        ("nic_links", machine.nics[0].name + "/1")
    ]
    assert node.run("--clear", machine.nics[0].name + "/1") == 0
    assert node.run() == 0 and node.document["verdict"] == "ok"


def test_a_check_over_time_can_be_left_out(node):
    node.declare(skip_checks=["nic_links"])
    document = node.examine(machines.dgx_a100())
    assert "nic_links" in document["skipped_checks"]
    assert "nic_links" not in {one["check"] for one in document["judged"]}


def with_drive(node, text):
    """A machine with an ATA drive, of which a program in smartctl's place says the text."""
    node.look(machines.a40_pcie().with_files({"sys/block/sda/device/vendor": "ATA     \n", "root/usr/sbin/smartctl":
              f"#!/bin/sh\necho >> {node.place}/asked\necho '{text}'\n"}))  # fmt: skip
    (node.place / "root" / "usr" / "sbin" / "smartctl").chmod(0o755)


def test_ata_drives_are_asked_once_and_counted_in_every_run(node):
    with_drive(node, '{"smart_status": {"passed": false}}')
    for _run in range(2):
        assert node.run() == 0
        assert [(one["check"], one["subject"]) for one in node.document["findings"]] == [("ata_health", "sda")]
    assert (node.place / "asked").read_text() == "\n"


def test_without_smartctl_ata_drives_are_skipped_and_it_is_said(node):
    node.examine(machines.a40_pcie().with_files({"sys/block/sda/device/vendor": "ATA     \n"}))
    assert (node.document["verdict"], node.document["skipped_checks"]) == ("ok", ["ata_health"])
    assert "ata_health" not in {one["check"] for one in node.document["judged"]}


def test_in_a_container_drives_are_not_asked(node):
    with_drive(node, '{"smart_status": {"passed": false}}')
    namespace = node.place / "proc" / "self" / "ns" / "pid"
    namespace.unlink()
    namespace.symlink_to("pid:[4026532999]")
    assert node.run() == 0 and node.document["verdict"] == "ok" and not (node.place / "asked").exists()


def test_drives_that_are_left_out_are_not_asked(node):
    node.declare(skip_checks=["ata_health"])
    with_drive(node, '{"smart_status": {"passed": false}}')
    assert node.run() == 0 and node.document["verdict"] == "ok" and not (node.place / "asked").exists()


@pytest.mark.parametrize("arguments", [("--clear",), ("--help",), ("--clear", "mlx5_9/1")])
def test_words_that_are_not_understood(node, arguments):
    node.examine(machines.a40_pcie())
    assert isinstance(node.run(*arguments), str)


def test_the_hook_is_told_changes(node):
    program = node.place / "tell"
    program.write_text(f'#!/bin/sh\necho "$1" >> {node.place}/told\n')
    program.chmod(0o755)
    node.declare(hook=str(program), hook_mode="act")
    machine = machines.hgx_h100()
    for log in ("", xid(79, machine), xid(79, machine), ""):
        node.examine(machine, log)
    assert (node.place / "told").read_text().splitlines() == [str(node.place / "state" / "health.json")] * 2


def test_the_hook_in_shadow_is_not_called(node, capfd):
    node.declare(hook=str(node.place / "none"))
    machine = machines.hgx_h100()
    document = node.examine(machine, xid(79, machine))
    assert document["hook"]["outcome"] == "shadow"
    assert "would call" in capfd.readouterr().out


def test_a_hook_is_told_what_was_found_before_it_was_called(node):
    """A node that is broken while it is said what would be done is still broken when that is to be done."""
    machine = machines.hgx_h100()
    program = node.place / "tell"
    program.write_text(f"#!/bin/sh\necho told >> {node.place}/told\n")
    program.chmod(0o755)
    for options in ({}, {"hook": str(program)}, {"hook": str(program), "hook_mode": "act"}):
        node.declare(hook_per_day=1, **options)
        node.examine(machine, xid(79, machine, 2))
        outcome = (node.document["hook"] or {}).get("outcome")
        assert outcome == {0: None, 1: "shadow", 2: "call"}[len(options)]
    node.examine(machine, xid(79, machine, 2))
    assert (node.place / "told").read_text() == "told\n"


def test_metrics_that_cannot_be_written_hold_nothing_back(node):
    """The directory may be another user's, and the disk full; the scheduler is told all the same, and the next run knows this one."""
    machine = machines.hgx_h100()
    program = node.place / "tell"
    program.write_text(f"#!/bin/sh\necho told >> {node.place}/told\n")
    program.chmod(0o755)
    node.declare(hook=str(program), hook_mode="act")
    (node.place / "textfile" / "allreduce_health.prom.new").mkdir()
    node.look(machine, xid(79, machine, 2))
    assert [node.run(), node.run()] == [f"{node.place}/textfile/allreduce_health.prom: Is a directory"] * 2
    assert (node.place / "told").read_text() == "told\n"


def test_a_hook_that_fails_is_told_again(node):
    program = node.place / "tell"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    node.declare(hook=str(program), hook_mode="act")
    machine = machines.hgx_h100()
    node.look(machine, xid(79, machine))
    assert "exit 1" in node.run()
    program.write_text(f"#!/bin/sh\ntouch {node.place}/told\n")
    assert node.run() == 0 and (node.place / "told").exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"colour": 1}', '{"skip_checks": ["colour"]}'])
def test_a_declaration_that_is_wrong_is_refused(node, text):
    node.look(machines.a40_pcie())
    (node.place / "health.json").write_text(text)
    assert isinstance(node.run(), str)


def test_without_a_directory_there_are_no_metrics(node):
    node.declare(textfile_directory=str(node.place / "none"))
    node.examine(machines.a40_pcie())
    assert not (node.place / "none").exists()


def test_files_can_be_read_by_others(node, root_umask):
    node.examine(machines.a40_pcie())
    assert os.stat(node.place / "state" / "health.json").st_mode & 0o777 == 0o644
    assert os.stat(node.place / "textfile" / "allreduce_health.prom").st_mode & 0o777 == 0o644


def test_a_state_that_is_no_state_is_begun_anew(node):
    node.examine(machines.a40_pcie())
    (node.place / "state" / "state.json").write_text("[1")
    assert node.run() == 0


def test_options_have_the_defaults_of_the_module():
    options = program_options.parse("{}")
    assert options["max_uncorrected_errors"] == 0 and options["gpu_count"] is None and options["persistence"] is True
