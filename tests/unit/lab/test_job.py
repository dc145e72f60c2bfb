# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `make demo` and `make reference` do with hosts that are up, without hosts."""

import dataclasses
import json
import re
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve

from tests.lab import demo, job, paths, reference, users, wheels
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
    report = {"verdict": {"sentences": ["Trained on 2 nodes."]}, "scaling": []}
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
    assert [line.split()[0] for line in out[out.index("step    ") :].splitlines()[1:7]] == names
    assert out.endswith(
        f"""
Trained on 2 nodes.

The report is one file, for any browser:
  {playing.inventory}/.reports/report.html
Next, or any other playbook on these hosts:
  .venv/bin/ansible-playbook site.yml -i {playing.inventory} --check --diff
Again:
  make it
Remove everything:
  make demo-down
"""
    )


def test_the_last_screen_fits_a_terminal_of_80_columns():
    report = {"verdict": {"sentences": ["The nodes share the processors of one machine. " * 4]}}
    lines = job.Job(paths.CHECKOUT / "inventories" / "lab", (), "make demo").achieved(report)
    assert "  .venv/bin/ansible-playbook site.yml -i inventories/lab --check --diff" in lines
    assert max(len(line) for line in lines if not line.endswith("report.html")) <= 80


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


def test_what_a_first_run_builds_is_said_where_it_is_built():
    """Horovod takes most of the demo's time; a reference system has a site of its own for it."""
    jobs = (demo.job(2), *(reference.get(name).job() for name in reference.names()))
    said = [next(step.usual for step in one.steps if step.name == "site") for one in jobs]
    assert ["Horovod" in usual for usual in said] == [True, *[False] * len(reference.names())]


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
    """Nor with the variables of a later site."""
    steps = reference.get(name).job().steps
    assert [step.name for step in steps[:3]] == ["plan", "site", "verify"]
    sites = [step for step in steps if isinstance(step, job.Step) and step.playbook == "site"]
    assert [step.still for step in sites] == [False, True] * (len(sites) // 2)
    assert [step.options for step in sites[::2]] == [step.options for step in sites[1::2]]
    assert steps[-1] == sites[-1]


def test_what_differs_from_the_inventory_is_said():
    assert "but with pytorch_index: pypi:" in reference.get("a100-el8").remark
    remark = reference.get("a40-ubuntu2004").remark
    assert "but with pytorch_index: pypi, horovod: none, nccl: latest:" in remark
    assert "Horovod follows, with TensorFlow and without PyTorch;" in remark


TYPED = {
    "a100-el8": ["torchrun with c10d", ("horovodrun", "its profile has no Horovod"), ("mpirun", "its users start nothing")],
    "a100-ubuntu2204": ["torchrun", "torchmetrics", "mpi4py", ("horovodrun", "its profile has no Horovod"), "mpirun"],
    "a40-ubuntu2004": ["torchrun on one node", "torchvision", "torchaudio", "catboost", ("mpirun", "its users start nothing")],
    "multi-gpu-workstation": ["torchrun", ("horovodrun", "its profile has no Horovod"), ("mpirun", "its users start nothing")],
}  # fmt: skip


@pytest.mark.parametrize("name", reference.names())
def test_users_commands_are_typed_after_the_report(name):
    steps = reference.get(name).job().steps
    names = [step.name for step in steps]
    activated, *typed = steps[names.index("report") + 1 : names.index("site", 2)]
    assert activated == job.Activated(activated.nodes, users.ACTIVATE)
    for one, expected in zip(typed, TYPED[name], strict=True):
        if isinstance(expected, str):
            assert (type(one), one.name) == (job.Said if expected in users.LINES else job.Typed, expected)
            assert one.nodes.total == len(reference.get(name).hosts) * reference.get(name).gpus
        else:
            assert (type(one), one.name) == (job.Remark, expected[0])
            assert one.why.startswith(expected[1])


def test_mpirun_is_typed_where_the_inventory_has_open_mpi():
    """Roles install none by themselves; mpi4py loads it."""
    for name in reference.names():
        system = reference.get(name)
        variables = system.content["gpu_nodes"]["vars"]
        has = any(one.startswith("openmpi") for one in variables.get("base_packages", []))
        assert has == any(isinstance(step, job.Typed) and step.name == "mpirun" for step in system.job().steps)
        assert has or "mpi4py" not in variables.get("python_env_packages", [])


def test_the_newest_training_on_all_hosts_is_started_as_the_one_on_a_single_host():
    """The report compares the two."""
    for name in reference.names():
        trained = [step for step in reference.get(name).job().steps if step.name == "train"]
        assert "train_launcher=mpirun" not in (*trained[0].options, *trained[-1].options)


def test_modulefiles_are_loaded_where_the_inventory_has_them():
    system = reference.get("a100-el8")
    group = system.content["gpu_nodes"]
    more = {**group, "vars": {**group["vars"], "python_env_modulefiles": True}}
    modules = dataclasses.replace(system, content={"gpu_nodes": more})
    assert {step.activate for step in modules.typed() if not isinstance(step, job.Remark)} == {users.LOAD}


def test_horovod_follows_where_a_profile_has_it():
    """What compiles for GPUs comes between the roles that install its stubs and the one that needs it."""
    profiles = yaml.safe_load((paths.CHECKOUT / "data" / "stack" / "profiles.yml").read_text(encoding="utf-8"))[
        "profiles"
    ]
    asked = {name: "horovod" in profiles[name]["request"] for name in reference.names()}
    assert {name: name in reference.HOROVOD for name in reference.names()} == asked
    steps = reference.get("a40-ubuntu2004").job().steps
    names = [step.name for step in steps]
    later = steps[names.index("CUDA toolkit") :]
    assert [step.name for step in later[1:]] == [
        "site",
        "verify",
        "horovodrun --check-build",
        "horovodrun on one node",
        "site",
    ]
    assert {step.options for step in later if isinstance(step, job.Step)} == {later[1].options}
    assert later[4].why.startswith("horovodrun -np 4 -H localhost:4 ")


@pytest.mark.parametrize("name", reference.HOROVOD)
def test_it_is_compiled_for_the_same_driver_cuda_and_nccl(name):
    """Nothing but the environment differs, and nothing brings PyTorch, for whose CUDA it would have to be compiled."""
    variables = reference.get(name).content["gpu_nodes"]["vars"]
    question = {"ansible_core": "2.19", "profile": variables["gpu_stack_profile"], **variables["gpu_stack_host"]}
    later = reference.HOROVOD[name]
    first, second = (
        resolve({**question, "request": one})["stack"]
        for one in (reference.get(name).request, later["gpu_stack_request"])
    )
    assert [part for part in ("driver", "cuda", "cudnn", "nccl") if first[part] != second[part]] == []
    assert (
        "horovod" in second["environments"][0]["frameworks"]
        and "pytorch" not in second["environments"][0]["frameworks"]
    )
    assert set(later["python_env_packages"]) == {one for one in variables["python_env_packages"] if "torch" not in one}


def test_what_compiles_is_laid_on_every_host(monkeypatch, tmp_path):
    laid = []
    monkeypatch.setattr(job.toolkit, "put", laid.append)
    job.Equipped(("gpu-1", "gpu-2")).run(job.Job(tmp_path, (), "make it"))
    assert laid == ["gpu-1", "gpu-2"]


@pytest.mark.parametrize("name", reference.names())
def test_packages_beside_the_frameworks_compute(name):
    """They are in the system's wheels, too."""
    packages = reference.get(name).content["gpu_nodes"]["vars"].get("python_env_packages", [])
    assert [one for one in packages if one not in users.LINES] == []
    collected = {re.split("[=<>]", one)[0] for one in wheels.get(name).requirements}
    assert set(packages) <= collected


@pytest.mark.parametrize("found", [users.ENVIRONMENT, "/usr"])
def test_an_activated_shell_must_find_the_environment(monkeypatch, tmp_path, found):
    monkeypatch.setattr(users, "prefix", lambda name, activate: found if name == "gpu-2" else users.ENVIRONMENT)
    step = job.Activated(users.Nodes(("gpu-1", "gpu-2"), 1), users.ACTIVATE)
    what = job.Job(tmp_path, (), "make it")
    if found == users.ENVIRONMENT:
        step.run(what)
    else:
        with pytest.raises(LabError, match="on gpu-2, python is that of /usr"):
            step.run(what)


def test_the_table_has_every_step_with_its_time():
    rows = [(job.Step("site", "bring them to it"), 61.4), (job.Remark("mpirun", "nobody types it"), None)]
    assert job.table(rows).splitlines()[1:] == [
        f"site{' ' * 24}      61  bring them to it",
        f"mpirun{' ' * 22}       -  nobody types it",
    ]


def test_a_host_alone_trains_with_all_its_gpus():
    trained = [step for step in reference.get("a40-ubuntu2004").job().steps if step.name == "train"]
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
    assert given["variables"]["gpu_stack_request"] == {"pytorch_index": "pypi", "horovod": "none", "nccl": "latest"}
    assert given["wheel_set"] == "a40-ubuntu2004"
    found = {str(path.relative_to(system.inventory)) for path in system.inventory.rglob("*") if path.is_file()}
    assert found == {"hosts.yml", "group_vars/all.yml"}
    assert yaml.safe_load((system.inventory / "hosts.yml").read_text(encoding="utf-8")) == system.content


def test_ansible_is_found_where_its_environment_is_not_activated(monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    paths.find_own_programs()
    assert shutil.which("ansible-playbook") == str(Path(sys.executable).parent / "ansible-playbook")
