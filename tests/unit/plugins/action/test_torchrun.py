# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action on one node, with module training_unit answered by the test."""

import base64
import io
import json
import os
import signal
import tarfile
import time
from types import SimpleNamespace

import pytest
import yaml
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible.parsing.dataloader import DataLoader
from ansible_collections.allreduce.gpu.plugins.action import torchrun
from ansible_collections.allreduce.gpu.plugins.modules import torchrun as documented
from ansible_collections.allreduce.gpu.plugins.plugin_utils.topology.recorded import recorded_node

GOOD = {"state": "succeeded", "result": "success", "exit_code": 0, "signal": None, "pid": 7}
RANK = {"rank": 0, "local_rank": 0, "world_size": 1, "attempt": 0, "started": 1.0, "last_output": None, "last_line": ""}


def logs(**files):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return base64.b64encode(packed.getvalue()).decode()


class Node:
    """Answers module training_unit; a test replaces what it wants to see go wrong."""

    def __init__(self):
        self.calls = []
        self.polled = {"service": GOOD, "ranks": [RANK], "now": 1.0, "versions": {}}
        self.stopped = {
            "service": GOOD, "ranks": [RANK], "now": 1.0, "agent": {"failures": [], "error": None},
            "metrics": {"loss_last": 0.5}, "logs": logs(**{"rank0.out": "hello", "../rank9.out": "evil"}),
        }  # fmt: skip

    def __call__(self, name, arguments, task_vars):
        assert name == "allreduce.gpu.training_unit"
        self.calls.append(arguments)
        answer = {"started": {}, "polled": self.polled, "stopped": self.stopped}[arguments["state"]]
        if isinstance(answer, Exception):
            raise answer
        return answer() if callable(answer) else answer

    def states(self):
        return [call["state"] for call in self.calls]


@pytest.fixture
def node():
    return Node()


@pytest.fixture
def act(tmp_path, node):
    (tmp_path / "train.py").write_text("print()")

    def run(check_mode=False, task_vars=None, **args):
        args = {"script": str(tmp_path / "train.py"), "run_id": "r1", "directory": str(tmp_path / "runs"), **args}
        task = SimpleNamespace(args=args, check_mode=check_mode, async_val=0, action="torchrun")
        shell = SimpleNamespace(tmpdir="/tmp/x", join_path=os.path.join)
        action = torchrun.ActionModule(task, SimpleNamespace(_shell=shell), None, DataLoader(), None, None)
        action._find_needle = lambda folder, path: path if os.path.exists(path) else _missing()
        action._execute_module = node
        action._transfer_data = lambda path, data: setattr(node, "uploaded", data) or path
        hosts = {"gpu-1": {"gpu_cluster_address": "10.0.0.1"}}
        variables = {
            "inventory_hostname": "gpu-1", "ansible_play_hosts": ["gpu-1"], "ansible_forks": 5, "hostvars": hosts,
        }  # fmt: skip
        node.shell = shell
        return action.run(task_vars={**variables, **(task_vars or {})})

    return run


def _missing():
    raise torchrun.AnsibleError("Could not find or access")


def test_the_documented_options_are_the_real_ones():
    documentation = yaml.safe_load(documented.DOCUMENTATION)["options"]
    keys = ("type", "elements", "required", "default")
    assert {
        name: {key: option[key] for key in keys if key in option} for name, option in documentation.items()
    } == torchrun._OPTIONS


def test_a_run_that_succeeds_leaves_result_and_logs(act, node, tmp_path):
    found = act()
    assert (found["failed"], found["msg"]) == (False, "train.py ran with 1 rank on 1 node.")
    assert found["training"]["metrics"] == {"loss_last": 0.5}
    assert json.loads((tmp_path / "runs" / "r1" / "result.json").read_text()) == found["training"]
    logs = tmp_path / "runs" / "r1" / "logs"
    assert [str(path.relative_to(logs)) for path in logs.rglob("*.out")] == ["gpu-1/rank0.out"]
    assert node.states() == ["started", "polled", "stopped"]
    start = node.calls[0]
    assert (start["user"], start["python"]) == ("trainer", "/opt/allreduce/envs/main/bin/python")
    assert start["archive"] == "/tmp/x/run.tar.gz"


@pytest.mark.parametrize(("keep", "removed"), [(True, False), (False, True)])
def test_the_nodes_directory_is_kept_on_request(act, node, keep, removed):
    act(keep=keep)
    assert node.calls[-1]["remove"] is removed


def test_arguments_and_variables_reach_the_script_and_not_the_nodes_log(act, node):
    act(variables={"TOKEN": 1}, args="--x 'a b'")
    assert "TOKEN" not in str(node.calls)
    with tarfile.open(fileobj=io.BytesIO(node.uploaded)) as tar:
        launch = json.load(tar.extractfile("launch.json"))
    nodes = {"ALLREDUCE_NODE_ADDRESSES": "10.0.0.1", "ALLREDUCE_NODE_NUMBER": "0"}
    assert launch["variables"] == {**nodes, "TOKEN": "1"}
    assert (launch["args"], launch["script"]) == (["--x", "a b"], "train.py")


def test_a_host_that_is_no_node_of_the_run_skips(act, node):
    found = act(nodes=["gpu-7"])
    assert found["skipped"]
    assert node.calls == []


def test_check_mode_starts_nothing_and_warns(act, node, tmp_path):
    node_answer = {"warnings": ["The training user 'trainer' does not exist on this node"]}
    node.__class__ = type("CheckNode", (Node,), {"__call__": lambda self, *a, **k: node_answer})
    found = act(check_mode=True)
    assert found["warnings"] == ["gpu-1: The training user 'trainer' does not exist on this node"]
    assert found["msg"].startswith("Would run ")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"script": "/nowhere.py"}, "/nowhere.py does not exist on the controller"),
        ({"nproc_per_node": "many"}, "nproc_per_node is 'many'"),
        ({"run_id": "../r1"}, "run_id is '../r1'"),
        ({"variables": {"A=B": 1}}, "The script cannot have a variable 'A=B'"),
        ({"variables": {"": 1}}, "The script cannot have a variable ''"),
        ({"variables": {"A": "\0"}}, "The script cannot have a variable 'A'"),
        ({"run_id": "r1\n"}, "run_id is 'r1"),
        ({"task_vars": {"hostvars": {"gpu-1": {}}}}, "No default IPv4 address on gpu-1; set gpu_cluster_address"),
        ({"task_vars": {"ansible_forks": 0}}, "needs as many forks"),
    ],
)
def test_a_request_that_cannot_work_is_refused_before_anything_is_touched(act, node, tmp_path, change, sentence):
    with pytest.raises(AnsibleActionFail, match=sentence):
        act(**change)
    assert node.calls == []
    assert not (tmp_path / "runs").exists()


def test_a_run_id_that_has_been_used_is_refused_although_no_node_kept_it(act, node):
    act(keep=False)
    calls = len(node.calls)
    with pytest.raises(AnsibleActionFail, match="Run r1 is below .*/runs already; give every run a run_id of its own"):
        act(keep=False)
    assert len(node.calls) == calls


@pytest.mark.parametrize(
    ("answer", "error", "sentence"),
    [
        (AnsibleConnectionFailure("no \x1broute"), AnsibleConnectionFailure, "no .?route"),
        ({"failed": True, "msg": "sudo: a password is required"}, AnsibleActionFail, "sudo: a password"),
        (
            {"warnings": json.loads("[" * 60 + "]" * 60)},
            AnsibleActionFail,
            "gpu-1 answered what module training_unit does",
        ),
    ],
)
def test_a_node_that_cannot_be_asked_in_check_mode_says_why(act, monkeypatch, answer, error, sentence):
    monkeypatch.setattr(Node, "__call__", lambda self, *a, **k: answer if isinstance(answer, dict) else _raise(answer))
    with pytest.raises(error, match=sentence):
        act(check_mode=True)


@pytest.mark.parametrize("warnings", [5, "no user", {"a": 1}, None])
def test_warnings_of_another_kind_are_left_out_in_check_mode(act, monkeypatch, warnings):
    monkeypatch.setattr(Node, "__call__", lambda self, *a, **k: {"warnings": warnings})
    assert act(check_mode=True)["warnings"] == []


def _raise(error):
    raise error


def test_a_refusal_has_its_levels_apart(act):
    with pytest.raises(AnsibleActionFail) as refused:
        act(task_vars={"hostvars": {"gpu-1": {}}})
    (problem,) = refused.value.result["problems"]
    assert problem["what"] == "No default IPv4 address on gpu-1" and problem["fix"].startswith(
        "set gpu_cluster_address"
    )


def test_a_node_that_refuses_fails_with_its_sentence(act, node, monkeypatch):
    monkeypatch.setattr(torchrun.RemoteUnit, "start", lambda self, place, generation: _refuse())
    found = act()
    assert found["failed"]
    assert found["msg"].startswith("Training failed on gpu-1: The training user 'trainer' does not exist on this node;")


def _refuse():
    raise torchrun.UnitError("The training user 'trainer' does not exist on this node.")


@pytest.mark.parametrize("state", ["polled", "stopped"])
@pytest.mark.parametrize(
    "error", [RecursionError("maximum recursion depth exceeded"), TypeError("no \x1b[2J mapping"), KeyError("failed")]
)
def test_an_answer_that_ansible_core_cannot_read_ends_the_run(act, node, tmp_path, state, error):
    """Each of its releases raises what comes of it. The others wait for this node's outcome, so there must be one."""
    setattr(node, state, error)
    found = act()
    assert found["failed"]
    assert found["msg"].startswith("Training failed on gpu-1: gpu-1 gives no answer that ansible-core can read: ")
    assert "\x1b" not in found["msg"]
    assert json.loads((tmp_path / "runs" / "r1" / "result.json").read_text())["failure"]["node"] == "gpu-1"
    assert json.loads((tmp_path / "runs" / "r1" / ".nodes" / "gpu-1.json").read_text())["phase"] == "ended"


def test_a_node_that_does_not_answer_is_unreachable(act, node, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    moments = iter(range(0, 10000, 10))
    monkeypatch.setattr(time, "monotonic", lambda: next(moments))
    node.polled = AnsibleConnectionFailure("no route to host")
    found = act()
    assert found["unreachable"]
    assert "gpu-1 became unreachable (no route to host)" in found["msg"]
    assert node.states().count("polled") > 1
    assert node.shell.tmpdir is None, "Ansible would connect once more to remove it"


def test_a_short_outage_at_the_end_costs_no_training(act, node, monkeypatch):
    """The unit may have been stopped when the answer was lost."""
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    stopped, answers = node.stopped, [AnsibleConnectionFailure("no route to host")]
    absent = {**stopped, "service": {**GOOD, "state": "absent", "exit_code": None}, "end": "was stopped from outside"}

    def stop():
        if answers:
            raise answers.pop()
        return absent

    node.stopped = stop
    found = act()
    assert (found["failed"], found["msg"]) == (False, "train.py ran with 1 rank on 1 node.")


def test_an_interrupt_stops_the_unit_and_is_passed_on(act, node, tmp_path):
    received = []
    before = signal.signal(signal.SIGINT, lambda number, frame: received.append(number))

    def interrupt():
        os.kill(os.getpid(), signal.SIGINT)

    node.polled = interrupt
    try:
        with pytest.raises(AnsibleActionFail, match="interrupted"):
            act()
    finally:
        signal.signal(signal.SIGINT, before)
    assert node.states() == ["started", "polled", "stopped"]
    assert received == [signal.SIGINT]
    result = json.loads((tmp_path / "runs" / "r1" / "result.json").read_text())
    assert result["failure"]["reason"] == "the run was interrupted"


def test_any_other_end_of_the_task_stops_the_unit(act, node):
    node.polled = MemoryError("no memory")
    with pytest.raises(MemoryError):
        act()
    assert node.states()[-1] == "stopped"


ESCAPE = "\x1b]0;owned\x07\x1b[2J"


def test_no_sequence_of_a_node_reaches_the_terminal(act, node, tmp_path):
    """On ansible-core 2.19 a failure's message is printed as it is."""
    failed = {**GOOD, "state": "failed"}
    failure = {"rank": 0, "local_rank": 0, "exit_code": 3, "time": 1, "message": ESCAPE}
    node.stopped = {
        **node.stopped, "service": failed, "agent": {"failures": [failure], "error": ESCAPE}, "end": ESCAPE, "tails": {"0": [f"{ESCAPE}boom"]},
        "metrics": {ESCAPE: ESCAPE}, "metrics_error": f"{ESCAPE}why", "flight_errors": {"0": ESCAPE},
    }  # fmt: skip
    found = act()
    assert "boom" in found["msg"]
    assert len(found["warnings"]) == 2
    assert "\\u001b" not in json.dumps(found)
    assert "\\u001b" not in (tmp_path / "runs" / "r1" / "result.json").read_text()


@pytest.mark.parametrize(
    "answer",
    [
        {"failed": True, "msg": f"{ESCAPE}no"},
        {"service": ESCAPE, "now": 1},
        AnsibleConnectionFailure(f"{ESCAPE}no route"),
    ],
)
def test_nor_does_one_of_a_node_that_refuses(act, node, monkeypatch, answer):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    moments = iter(range(0, 10000, 10))
    monkeypatch.setattr(time, "monotonic", lambda: next(moments))
    node.polled = answer
    found = act()
    assert found["failed"]
    assert "\\u001b" not in json.dumps(found)


@pytest.mark.parametrize("name", ["..", ".", "a/b", "x" * 50 + "/..", "rank0.out\n", "\x1b[2J"])
def test_logs_are_files_of_their_directory(act, node, tmp_path, name):
    node.stopped = {**node.stopped, "logs": logs(**{name: "evil", "rank0.out": "hello"})}
    assert not act()["failed"]
    assert [path.name for path in (tmp_path / "runs" / "r1" / "logs" / "gpu-1").iterdir()] == ["rank0.out"]


@pytest.mark.parametrize(
    ("answer", "stacks"),
    [
        (
            {
                "service": GOOD,
                "now": 1,
                "ranks": [{**RANK, "stack": [f"{ESCAPE}train.py:1 main"]}],
                "mount_faults": [f"{ESCAPE}/data"],
            },
            ({"0": ["train.py:1 main"]}, ["/data"]),
        ),
        ({"service": GOOD, "now": 1, "ranks": [{**RANK, "stack": "x"}]}, ({}, ())),
        ({"failed": True, "msg": "no"}, ({}, ())),
        (AnsibleConnectionFailure("no route"), ({}, ())),
    ],
)
def test_a_node_that_cannot_tell_where_its_ranks_are_does_not_end_the_run(act, node, monkeypatch, answer, stacks):
    told = []

    def run(follower):
        node.polled = answer
        told.append(follower._unit.stacks())
        assert follower._limits.stall_timeout == 600
        return {"status": "succeeded"}

    monkeypatch.setattr(torchrun.Follower, "run", run)
    monkeypatch.setattr(torchrun.Follower, "gather", lambda follower: [_succeeded()])
    assert not act()["failed"]
    assert told == [stacks]
    assert node.calls[-1]["stacks"] is True


def _succeeded():
    return {
        "node": "gpu-1",
        "status": "succeeded",
        "started": 1.0,
        "finished": 2.0,
        "world_size": 1,
        "metrics": None,
        "failures": [],
    }


def test_results_that_cannot_be_written_are_one_sentence(act, tmp_path):
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(AnsibleActionFail, match=r"The results below .*/runs cannot be written"):
        act()


def test_a_node_that_was_lost_by_a_run_that_succeeded_is_a_warning(act, node, tmp_path):
    nodes = tmp_path / "runs" / "r1" / ".nodes"
    nodes.mkdir(parents=True)
    peer = {
        "node": "gpu-2",
        "status": "succeeded",
        "started": 1.0,
        "finished": 2.0,
        "world_size": 1,
        "metrics": None,
        "failures": [],
    }
    (nodes / "gpu-2.json").write_text(
        json.dumps({"phase": "ended", "outcome": peer, "until": 0, "rendezvous_error": None})
    )
    node.stopped = {
        **node.stopped,
        "service": {**GOOD, "state": "failed"},
        "agent": None,
        "end": "was killed by signal 9",
    }
    hosts = {f"gpu-{number}": {"gpu_cluster_address": f"10.0.0.{number}"} for number in (1, 2)}
    two = {"ansible_play_hosts": list(hosts), "hostvars": hosts}
    found = act(launcher="elastic", min_nodes=1, max_restarts=1, task_vars=two)
    assert (found["failed"], found["training"]["status"]) == (False, "succeeded")
    assert found["training"]["lost"] == [{"node": "gpu-1", "reason": "torchrun was killed by signal 9"}]
    assert found["warnings"] == ["gpu-1 was lost during run r1, which ended without it."]


def test_mpirun_is_looked_for_on_the_node_and_nobody_waits_for_a_rendezvous(act, node):
    gpu = recorded_node("GPU0 GPU1 CPU Affinity\nGPU0 X NV4 0-3,8-11\nGPU1 NV4 X 0-3,8-11\n")
    act(launcher="mpirun", task_vars={"ansible_facts": {"gpu_node": gpu}})
    assert node.calls[0]["programs"][0] == "/usr/bin/mpirun"
    assert "rendezvous" not in node.calls[1]
    with tarfile.open(fileobj=io.BytesIO(node.uploaded)) as tar:
        assert {"mpi.py", "relay.py"} <= set(tar.getnames())
        launch = json.load(tar.extractfile("launch.json"))
    assert (launch["is_first"], launch["addresses"], launch["engine"]) == (True, ["10.0.0.1"], "mpirun")
    assert launch["cpus"] == ["0-1,8-9", "2-3,10-11"]


def test_slurm_is_asked_for_the_gpus_that_were_measured(act, node):
    gpu = recorded_node("GPU0 GPU1 CPU Affinity\nGPU0 X NV4 0-3,8-11\nGPU1 NV4 X 0-3,8-11\n")
    hosts = {
        "gpu-1": {"gpu_cluster_address": "10.0.0.1", "slurm_node_name": "node1", "ansible_facts": {"gpu_node": gpu}}
    }
    result = act(launcher="slurm", max_restarts=2, task_vars={"hostvars": hosts})
    assert not result["failed"]
    assert node.calls[0]["programs"][0] == "/usr/bin/sbatch"
    with tarfile.open(fileobj=io.BytesIO(node.uploaded)) as tar:
        assert {"slurm.py", "commands.py"} <= set(tar.getnames())
        launch = json.load(tar.extractfile("launch.json"))
    assert (launch["engine"], launch["nodes"], launch["gpus"], launch["job"]) == ("slurm", ["node1"], 2, "allreduce-r1")
    assert (launch["is_first"], launch["restarts"]) == (True, 2)


def test_the_job_is_in_the_result(act, node, tmp_path):
    node.stopped["job"] = {"id": 7, "state": "COMPLETED", "restarts": 1}
    act(launcher="slurm")
    assert json.loads((tmp_path / "runs" / "r1" / "result.json").read_text())["job"] == {"id": 7, "restarts": 1}


def test_what_torchrun_needs_is_all_that_travels_for_it(act, node):
    act()
    with tarfile.open(fileobj=io.BytesIO(node.uploaded)) as tar:
        assert sorted(tar.getnames()) == [
            "agent.py",
            "launch.json",
            "rank.py",
            "sitecustomize.py",
            "watch.py",
            "work/train.py",
        ]
    assert node.calls[1]["rendezvous"] == "10.0.0.1:29500"
    assert not {"again", "programs"} & set(node.calls[0])
