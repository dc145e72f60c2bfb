# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `make reference SYSTEM="… --slurm"` does with hosts that are up, without hosts."""

import subprocess
from pathlib import Path

import pytest

from tests.lab import job, queued, reference, replicas, users
from tests.lab.progress import LabError

SYSTEMS = ("a100-el8", "a100-ubuntu2204")


@pytest.mark.parametrize("name", SYSTEMS)
def test_it_has_the_gpus_and_settings_of_the_system_and_what_its_distribution_decides_is_left_out(name):
    system, own = queued.get(name), reference.get(name)
    assert system.machines == own.machines and len(system.hosts) == len(own.hosts) == 2
    assert replicas.get(system.distribution).name == "debian12"
    kept, whole = (one.content["gpu_nodes"]["vars"] for one in (system, own))
    assert kept == {key: value for key, value in whole.items() if key not in queued.OTHERWISE}
    assert kept["rdma_state"] == "present" and "gpu_stack_host" in whole
    # Hosts of the system itself stay as they are.
    assert not set(system.hosts) & set(own.hosts) and system.lab != own.lab and system.inventory != own.inventory
    assert [*system.hosts, system.controller] == [f"{system.lab}-{number}" for number in (1, 2, 3)]


@pytest.mark.parametrize("name", SYSTEMS)
def test_it_trains_as_a_job_and_changes_nothing_the_second_time(name):
    system = queued.get(name)
    steps = system.job().steps
    assert [step.name for step in steps] == ["plan", "site", "verify", "train", "report", "sbatch", "site"]
    assert "verify_slurm_job=true" in steps[2].options
    assert {"train_launcher=slurm", "train_nodes=2"} <= set(steps[3].options)
    assert steps[-1].still and isinstance(steps[-2], job.Typed)
    assert steps[-2].command == "sbatch --wait --parsable --nodes=2 --gres=gpu:4 train.sbatch train_ddp.py --epochs 2"
    assert steps[-2].nodes == users.Nodes(system.hosts, 4)


def test_a_system_of_one_host_has_no_queue():
    with pytest.raises(LabError, match="a40-ubuntu2004 has one host"):
        queued.get("a40-ubuntu2004")


def test_the_controller_is_no_node():
    group = {"hosts": {"a-1": {"x": 1}, "a-2": {"x": 2}}, "vars": {"ansible_user": "ansible"}}
    assert queued.with_controller({"gpu_nodes": group}, "a-2") == {
        "gpu_nodes": {"hosts": {"a-1": {"x": 1}}, "vars": group["vars"]},
        "controllers": {"hosts": {"a-2": {"x": 2}}, "vars": group["vars"]},
    }


LEARNED = "epoch 2/2 loss 0.1\nloss 2.31 -> 1.90 in 3 s, 8 ranks\n"


@pytest.mark.parametrize(
    ("code", "said", "accounted", "problem"),
    [
        (0, LEARNED, "7|trainer|COMPLETED|9|billing=8,gres/gpu=8,node=2", None),
        (1, LEARNED, "", "ended with 1"),
        (0, "", "", "it did not reach epoch 2"),
        (0, LEARNED.replace("8 ranks", "2 ranks"), "", "it had 2 ranks instead of 8"),
        (0, LEARNED, "7|trainer|COMPLETED|9|billing=8,node=2", "not accounted as completed with 8 GPUs"),
        (0, LEARNED, "7|trainer|FAILED|9|billing=8,gres/gpu=8,node=2", "not accounted as completed with 8 GPUs"),
    ],
)
def test_a_job_has_to_train_on_all_gpus_and_to_be_accounted(monkeypatch, code, said, accounted, problem):
    typed = []

    def answer(_name, line, _activate):
        typed.append(line)
        return subprocess.CompletedProcess([], code, accounted if line.startswith("sacct") else "7\n")

    monkeypatch.setattr(users, "place", lambda names, scripts: None)
    monkeypatch.setattr(users, "typed", answer)
    monkeypatch.setattr(queued, "podman", lambda *words: said)
    step = queued.Submitted("sbatch job", users.Nodes(("a-1", "a-2"), 4), "true")
    done = job.Job(Path("none"), (), "again")
    if problem:
        with pytest.raises(LabError, match=problem):
            step.run(done)
    else:
        step.run(done)
        assert typed[0] == "sbatch job" and typed[1].endswith("--jobs=7")
