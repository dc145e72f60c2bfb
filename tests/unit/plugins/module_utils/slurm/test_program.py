# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs that Slurm starts, with a sinfo and a scontrol that answer from a file: what they tell Slurm, and their exit codes."""

import json
import multiprocessing
import os
import subprocess
import time

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.slurm import decision, health_check, leftovers, program
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.slurm_helper import SlurmCommands

LOST = {"check": "gpu_answers", "subject": "GPU1", "severity": "failed", "action_class": "reboot"}
REASON = "allreduce: gpu_answers GPU1: reboot"


class Watched:
    """A node n1 of a cluster of ten, with what role health leaves on it."""

    def __init__(self, place, monkeypatch):
        self.place, self.said = place, []
        self.slurm = SlurmCommands(place, *(f"n{number}" for number in range(1, 11)))
        monkeypatch.setenv("PATH", f"{self.slurm.directory}:{os.environ['PATH']}")
        monkeypatch.setattr(decision, "SETTLE", 0.5)
        (place / "state").mkdir()
        self.places = program.Places(
            str(place / "health.json"), str(place / "state"), FileTree("/proc"), str(place / "dev"), "libnone.so.1", program.open_nvml
        )  # fmt: skip
        self.declare("act")

    def declare(self, mode):
        (self.place / "health.json").write_text(json.dumps({"hook_mode": mode}), "utf-8")

    def found(self, *findings, verdict="failed", age=0):
        document = {
            "findings": list(findings),
            "verdict": verdict,
            "timestamp": time.time() - age,
            "duration_seconds": 0,
        }
        (self.place / "state" / "health.json").write_text(json.dumps(document), "utf-8")

    def run(self, *arguments, **environment):
        return program.main(list(arguments), self.places, environment, self.said.append)

    def check(self):
        return self.run("check", "n1", "health.json")


@pytest.fixture
def node(tmp_path, monkeypatch):
    return Watched(tmp_path, monkeypatch)


def test_a_node_is_drained_for_the_right_reason_and_given_back(node):
    node.found(LOST)
    assert node.check() == 0
    assert {name for name, one in node.slurm.nodes.items() if one[0] != "idle"} == {"n1"}
    assert node.slurm.nodes["n1"][:2] == ("drained", REASON)
    assert node.check() == 0 and len(node.slurm.told) == 1
    node.found(verdict="ok", age=5)
    assert node.check() == 0 and node.slurm.nodes["n1"][0] == "drained"
    time.sleep(1.1)
    node.found(verdict="ok")
    assert node.check() == 0
    assert node.slurm.nodes["n1"] == ("idle", "", None)
    assert node.said == [
        f"drained: {REASON}",
        f"is drained until every check has passed: {REASON}",
        f"given back: {REASON}",
    ]


def test_shadow_mode_tells_once_and_changes_nothing(node):
    node.declare("shadow")
    node.found(LOST)
    assert [node.check(), node.check()] == [0, 0]
    assert node.slurm.told == [] and node.said == [f"in shadow mode, would be drained: {REASON}"]
    assert node.run("prolog", SLURM_JOB_ID="7", SLURM_JOB_GPUS="0") == 0


def test_what_others_drained_stays_as_it_is(node):
    node.slurm.set("n1", "drained", "fan 3")
    for findings, verdict in (((LOST,), "failed"), ((), "ok")):
        node.found(*findings, verdict=verdict)
        assert node.check() == 0
    assert node.slurm.told == []


@pytest.mark.parametrize("age", [None, 601])
def test_a_node_that_was_not_looked_at_is_left_as_it_is(node, age):
    node.slurm.set("n1", "drained", REASON)
    if age:
        node.found(verdict="ok", age=age)
    assert node.check() == 0 and node.slurm.told == []
    assert node.said == ["health.json is missing or old; nothing is done"]


def test_a_node_whose_health_nobody_watches_is_left_as_it_is(node):
    os.remove(node.places.declaration)
    node.found(LOST)
    codes = [
        node.check(),
        node.run("prolog", SLURM_JOB_GPUS="0"),
        node.run("epilog", SLURM_JOB_ID="7", SLURM_JOB_GPUS="0"),
    ]
    assert codes == [0, 0, 0] and node.slurm.told == []


def test_a_slurm_that_does_not_answer_is_asked_again_by_the_hook(node):
    node.found(LOST)
    node.slurm.stop()
    assert node.check() == 1
    assert node.said[0].startswith("Slurm does not answer: sinfo: slurm_load_node error")


def test_what_is_surplus_takes_its_drain_back(node, monkeypatch):
    """Another node finds the same room at the same time, and comes first."""
    node.found(LOST)
    drain = health_check.controller.drain

    def both(name, reason):
        node.slurm.set("n2", "drained", REASON, int(time.time()) - 1)
        drain(name, reason)

    monkeypatch.setattr(health_check.controller, "drain", both)
    assert node.check() == 0
    assert [node.slurm.nodes[name][0] for name in ("n1", "n2")] == ["idle", "drained"]
    assert node.said == [
        f"not drained, since too many nodes were drained within ten minutes; a person has to look: {REASON}"
    ]
    assert node.run("prolog", SLURM_JOB_ID="7", SLURM_JOB_GPUS="0") == 0


def test_the_prolog_refuses_what_was_decided_and_nothing_else(node):
    node.found(LOST)
    node.check()
    job = {"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "0,1"}
    assert node.run("prolog", **job) == program.REFUSED
    assert node.run("prolog", SLURM_JOB_ID="8") == 0, "a job without GPUs"
    # slurmctld knows of an exit code only; the reason comes after.
    node.slurm.set("n1", "drained", "Prolog error")
    assert node.check() == 0 and node.slurm.nodes["n1"][:2] == ("drained", REASON)
    node.found(verdict="ok")
    assert node.run("prolog", **job) == 0


def test_the_prolog_waits_for_a_decision_and_not_for_long(node, monkeypatch):
    monkeypatch.setattr(program, "UNDECIDED", 0.5)
    node.found(LOST)
    began = time.time()
    assert node.run("prolog", SLURM_JOB_ID="7", SLURM_JOB_GPUS="0") == 0
    assert 0.5 <= time.time() - began < 5


def test_the_epilog_ends_what_a_job_left_and_the_node_is_well(node, monkeypatch):
    left = subprocess.Popen(["sleep", "60"])
    found = [(left.pid, leftovers.start_of(node.places.proc, left.pid))]
    monkeypatch.setattr(leftovers, "left_by", lambda *_arguments: found)
    job = {"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "0", "SLURM_JOB_UID": "1000"}
    node.declare("shadow")
    assert node.run("epilog", **job) == 0 and left.poll() is None
    node.declare("act")
    assert node.run("epilog", **job) == 0 and left.wait() == -9
    assert node.said[-1] == f"job 7 of user 1000 left processes on its GPUs: {left.pid}"


def test_what_cannot_be_cleared_drains_the_node_until_it_is_gone(node, monkeypatch):
    stays = subprocess.Popen(["sleep", "60"])
    found = [(stays.pid, leftovers.start_of(node.places.proc, stays.pid))]
    monkeypatch.setattr(leftovers, "left_by", lambda *_arguments: found)
    monkeypatch.setattr(leftovers.clear, "__defaults__", (lambda *_arguments: None, 0.1))
    assert node.run("epilog", SLURM_JOB_ID="7", SLURM_JOB_GPUS="0", SLURM_JOB_UID="1000") == program.REFUSED
    node.slurm.set("n1", "drained", "Epilog error")
    node.found(verdict="ok")
    node.check()
    reason = "allreduce: epilog of job 7: processes that cannot be killed: 1"
    assert node.slurm.nodes["n1"][:2] == ("drained", reason)
    time.sleep(1.1)
    node.found(verdict="ok")
    node.check()
    assert node.slurm.nodes["n1"][0] == "drained"
    stays.kill()
    stays.wait()
    node.check()
    assert node.slurm.nodes["n1"][0] == "idle"


def test_a_program_that_crashes_says_nothing_about_the_node(node):
    assert node.run("epilog", SLURM_JOB_GPUS="0") != program.REFUSED
    (node.place / "state" / "health.json").write_text(json.dumps({"findings": 3, "timestamp": time.time()}), "utf-8")
    assert node.run("prolog", SLURM_JOB_GPUS="0") != program.REFUSED
    assert all(one.startswith("failed, which says nothing about the node: ") for one in node.said)


def test_ten_nodes_that_break_at_once_trip_the_breaker(node, tmp_path, monkeypatch):
    """Ten processes with prepared verdicts, as if each were a node."""
    monkeypatch.setattr(decision, "SETTLE", 3)
    running = []
    for number in range(1, 11):
        directory = tmp_path / f"n{number}"
        directory.mkdir()
        node.found(LOST)
        (directory / "health.json").write_text((node.place / "state" / "health.json").read_text("utf-8"), "utf-8")
        places = node.places._replace(directory=str(directory))
        running.append(multiprocessing.get_context("fork").Process(target=tell_once, args=(places, f"n{number}")))
    for process in running:
        process.start()
    for process in running:
        process.join()
    said = [(tmp_path / f"n{number}" / "said").read_text("utf-8") for number in range(1, 11)]
    assert [one[0] for one in node.slurm.nodes.values()].count("drained") == 1
    assert sorted("a person has to look" in one for one in said) == [False] + [True] * 9


def tell_once(places, name):
    said = []
    program.main(["check", name, "document"], places, {}, said.append)
    with open(os.path.join(places.directory, "said"), "w") as stream:
        stream.write("\n".join(said))
