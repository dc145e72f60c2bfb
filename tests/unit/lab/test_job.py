# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `make demo` and `make reference` do with hosts that are up, without hosts."""

import json
from pathlib import Path

import pytest
import yaml

from tests.lab import demo, job, paths, reference, wheels
from tests.lab.nvml import machines
from tests.lab.progress import LabError

RECAP = """
PLAY RECAP *********************************************************************
el8-1                      : ok=93   changed={}    unreachable=0    failed=0    skipped=41   rescued=0    ignored=0
localhost                  : ok=1    changed=0    unreachable=0    failed=0    skipped=0    rescued=0    ignored=0
"""


@pytest.fixture
def playing(monkeypatch, tmp_path):
    """ansible-playbook as a program that records its arguments, prints a recap and can be told to fail or to change."""

    class Playing:
        inventory = tmp_path / "inventory"

        def say(self, status=0, changed=0):
            program = tmp_path / "bin" / "ansible-playbook"
            program.parent.mkdir(exist_ok=True)
            text = (
                f"#!/bin/sh\necho \"$@\" >> {tmp_path}/called\ncat <<'END'\n{RECAP.format(changed)}END\nexit {status}\n"
            )
            program.write_text(text, encoding="utf-8")
            program.chmod(0o755)

        @property
        def called(self):
            return (tmp_path / "called").read_text(encoding="utf-8").splitlines()

        def run(self, *steps):
            job.Job(self.inventory, steps, "make it").run()

    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    (tmp_path / "inventory" / ".reports").mkdir(parents=True)
    report = {"verdict": {"sentences": ["Trained on 2 nodes."]}}
    (tmp_path / "inventory" / ".reports" / "report.json").write_text(json.dumps(report), encoding="utf-8")
    return Playing()


def test_every_step_is_a_playbook_on_the_inventory(playing, capfd):
    playing.say(changed=3)
    playing.run(*job.steps(2, "-e", "train_port=1"))
    names = ["plan", "site", "verify", "train", "train", "report"]
    assert [line.split()[:3] for line in playing.called] == [
        [f"playbooks/{name}.yml", "-i", str(playing.inventory)] for name in names
    ]
    assert [line.split()[3:] for line in playing.called if "train" in line] == [
        ["-e", f"train_nodes={nodes}", "-e", "train_port=1"] for nodes in (1, 2)
    ]
    out = capfd.readouterr().out
    assert out.count("PLAY RECAP") == len(names)
    assert out.endswith(f"Trained on 2 nodes.\nReport: {playing.inventory}/.reports/report.html\n")


def test_one_host_trains_once():
    assert [step.playbook for step in job.steps(1)].count("train") == 1


def test_a_step_that_fails_ends_the_job(playing):
    playing.say(status=2)
    with pytest.raises(LabError, match=r"plan\.yml ended with 2: .*`make it` goes on from there"):
        playing.run(*job.steps(2))
    assert len(playing.called) == 1


def test_a_step_that_must_change_nothing_may_not(playing):
    still = job.Step("site", "once more", still=True)
    playing.say()
    playing.run(still)
    playing.say(changed=12)
    with pytest.raises(LabError, match=r"site\.yml changed something once more: \{'el8-1': 12\}"):
        playing.run(still)


@pytest.mark.parametrize(
    ("nodes", "trained"),
    [
        (1, ["on one host", "with Horovod on one host"]),
        (2, ["on one host", "on 2 hosts", "with Horovod on 2 hosts"]),
    ],
)
def test_the_demo_trains_with_torchrun_and_horovod_and_needs_no_second_run(nodes, trained):
    steps = demo.job(nodes).steps
    assert [step.playbook for step in steps] == ["plan", "site", "verify", *["train"] * len(trained), "report"]
    assert [step.why for step in steps if step.playbook == "train"] == trained


def test_other_hosts_compile_no_horovod(tmp_path):
    demo.copy_settings(tmp_path)
    given, mine = (
        yaml.safe_load((place / "group_vars" / "gpu_nodes.yml").read_text(encoding="utf-8"))
        for place in (demo.INVENTORY, tmp_path)
    )
    assert given["gpu_stack_request"].pop("horovod")
    assert mine == given


@pytest.mark.parametrize("name", reference.names())
def test_a_reference_system_is_its_inventory(name):
    """The same variables, but for fewer hosts; simulated machines have the GPUs that it describes."""
    system = reference.get(name)
    whole = yaml.safe_load((paths.CHECKOUT / "inventories" / name / "hosts.yml").read_text(encoding="utf-8"))[
        "gpu_nodes"
    ]
    mine = system.content["gpu_nodes"]
    assert mine["vars"] == whole["vars"]
    assert list(mine["hosts"]) == list(system.hosts) == list(whole["hosts"])[: reference.NODES]
    for host, machine in zip(system.hosts, system.machines, strict=True):
        described = {**whole["vars"], **(whole["hosts"][host] or {})}["gpu_stack_host"]["gpus"]
        assert sorted(gpu.model.name for gpu in machines.named(machine).gpus) == sorted(described)
        assert host == f"{system.lab}-{system.hosts.index(host) + 1}"


@pytest.mark.parametrize("name", reference.names())
def test_a_reference_system_has_wheels(name):
    assert wheels.get(name).view == "plain"


@pytest.mark.parametrize("name", reference.names())
def test_a_reference_system_changes_nothing_the_second_time(name):
    steps = reference.get(name).job().steps
    assert [step.playbook for step in steps[:3]] == ["plan", "site", "verify"]
    assert (steps[-1].playbook, steps[-1].still) == ("site", True)


def test_what_differs_from_the_inventory_is_said():
    assert "but with pytorch_index: pypi:" in reference.get("a100-el8").remark
    assert "but with pytorch_index: pypi, horovod: none:" in reference.get("a40-ubuntu2004").remark


def test_a_host_alone_trains_with_all_its_gpus():
    trained = [step for step in reference.get("a40-ubuntu2004").job().steps if step.playbook == "train"]
    assert [step.options[-1] for step in trained] == ["train_nproc_per_node=4"]


def test_collectives_have_as_many_ranks_as_training(monkeypatch, tmp_path):
    """No GPU of the lab computes, and no adapter reaches its memory: verify is told so."""
    given = {}
    monkeypatch.setattr(paths, "CHECKOUT", tmp_path)
    monkeypatch.setattr(reference.hosts, "up", lambda *args, **more: given.update({args[0]: more["variables"]}))
    for name in ("a40-ubuntu2004", "a100-el8"):
        reference.get(name).up()
    kept = ("verify_gpu_compute", "rdma_gpudirect", "verify_nproc_per_node")
    assert {lab: [variables[key] for key in kept] for lab, variables in given.items()} == {
        "a40": [False, False, "4"],
        "el8": [False, False, "1"],
    }


def test_the_four_reference_systems_are_known():
    assert reference.names() == ["a100-el8", "a100-ubuntu2204", "a40-ubuntu2004", "multi-gpu-workstation"]


def test_an_unknown_system_is_refused_with_the_known_ones():
    with pytest.raises(LabError, match=r"no reference system 'lab': use one of a100-el8, .*"):
        reference.get("lab")


def test_what_a_former_run_left_does_not_travel(tmp_path, monkeypatch):
    source = tmp_path / "inventories" / "a40-ubuntu2004"
    (source / ".reports").mkdir(parents=True)
    for file in ("hosts.yml", "stack.lock.yml", ".reports/report.json"):
        (source / file).write_text("left: true\n", encoding="utf-8")
    (source / "group_vars").mkdir()
    (source / "group_vars" / "all.yml").write_text("mine: true\n", encoding="utf-8")
    system = reference.get("a40-ubuntu2004")
    given = {}
    monkeypatch.setattr(reference, "INVENTORIES", tmp_path / "inventories")
    monkeypatch.setattr(paths, "CHECKOUT", tmp_path)
    monkeypatch.setattr(reference.hosts, "up", lambda *args, **more: given.update(args=args, **more))
    system.up()
    assert given["args"] == ("a40", 1, Path(system.inventory) / "lab.yml", ("a40-pcie",), "ubuntu2004")
    assert given["variables"]["gpu_stack_request"] == {"pytorch_index": "pypi", "horovod": "none"}
    assert given["wheel_set"] == "a40-ubuntu2004"
    found = {str(path.relative_to(system.inventory)) for path in system.inventory.rglob("*") if path.is_file()}
    assert found == {"hosts.yml", "group_vars/all.yml"}
    assert yaml.safe_load((system.inventory / "hosts.yml").read_text(encoding="utf-8")) == system.content
