# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import getpass
import json
import os
import shutil
import socket

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.problems import problem
from ansible_collections.allreduce.gpu.plugins.module_utils.training import (
    run as training_run,
)
from ansible_collections.allreduce.gpu.plugins.module_utils.training import (
    states as training_states,
)
from ansible_collections.allreduce.gpu.plugins.module_utils.training.describe import describe
from ansible_collections.allreduce.gpu.plugins.module_utils.training.run import RunError

# What `ip -json address show to 127.0.0.1` prints on a host with two interfaces.
LOOPBACK = json.dumps([{"ifname": "lo", "addr_info": [{"local": "127.0.0.1"}]}, {}])
SHOWN = "LoadState=loaded\nActiveState=active\nSubState=%s\nResult=success\nExecMainCode=%d\nExecMainStatus=0\n"


class Node:
    """Answers systemctl, systemd-run and ip; the service runs until STATES are used up."""

    def __init__(self, states=("running",), ip=LOOPBACK):
        self.states, self.ip, self.calls = list(states), ip, []

    def __call__(self, argv):
        self.calls.append(argv)
        if argv[0] == "ip":
            return (0, self.ip, "") if self.ip is not None else (1, "", "unknown option")
        if argv[1] == "show":
            state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
            return 0, SHOWN % (state, 1 if state == "exited" else 0), ""
        return 0, "", ""


@pytest.fixture(autouse=True)
def root(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", lambda *args: None)
    monkeypatch.setattr(os, "lchown", lambda *args: None)
    monkeypatch.setattr(training_states, "_POLL_STEP", 0.01)


@pytest.fixture
def params(tmp_path):
    python = tmp_path / "python"
    python.touch()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return {
        "run_id": "r1", "state": "started", "directory": str(tmp_path / "runs"), "user": getpass.getuser(),
        "python": str(python), "archive": "unused", "nodes": 1, "address": "127.0.0.1", "rendezvous": f"127.0.0.1:{port}",
        "lease": 60, "wait": 0, "tail_lines": 20, "log_limit": 1000, "remove": False,
    }  # fmt: skip


@pytest.fixture
def created(params, monkeypatch):
    """The run's directory, made by hand."""
    path = os.path.join(params["directory"], params["run_id"])
    os.makedirs(os.path.join(path, "logs"))
    return path


def test_nothing_speaks_against_a_good_request(params):
    assert training_states.refusals(params, Node()) == []


@pytest.mark.parametrize(
    ("state", "found", "changed"),
    [
        ("started", "exited", True),
        ("polled", "running", False),
        ("stopped", "running", True),
        ("stopped", "exited", False),
    ],
)
def test_check_mode_foresees_the_change_and_only_looks(params, state, found, changed):
    node = Node([found])
    assert training_states.changes(dict(params, state=state), node) is changed
    assert {argv[1] for argv in node.calls} <= {"show"}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"run_id": "../r1"}, "The run_id '../r1' is not valid"),
        (
            {"python": "/nowhere/bin/python"},
            "interpreter /nowhere/bin/python does not exist on this node; run playbook",
        ),
        (
            {"programs": ["/nowhere/sbatch", "/elsewhere/sbatch"]},
            "This node has no sbatch, so no job of Slurm's can be submitted; run playbook site.yml with slurm_state: present",
        ),
        (
            {"programs": ["/nowhere/mpirun"]},
            "This node has no mpirun; set train_install_mpi to true, or install Open MPI",
        ),
        ({"user": "nobody9"}, "The training user 'nobody9' does not exist on this node; run playbook site.yml"),
    ],
)
def test_what_is_missing_on_the_node_is_named(params, change, sentence):
    found = training_states.refusals(dict(params, **change), Node())
    assert len(found) == 1
    assert sentence in describe(found[0])


def test_root_is_needed(params, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert training_states.refusals(params, Node()) == [problem("not_root")]


def test_an_address_the_node_does_not_have_is_refused(params):
    found = training_states.refusals(dict(params, address="192.0.2.1"), Node(ip="[{},{}]"))
    assert found == [problem("no_address", "192.0.2.1")]


# As routing to the host puts it there, and ip prints it; some releases print no type.
ROUTED = {
    "ifname": "lo",
    "flags": ["LOOPBACK", "UP", "LOWER_UP"],
    "addr_info": [{"local": "10.20.30.40", "prefixlen": 32}],
}
DUMMY = {
    "ifname": "dummy0",
    "link_type": "ether",
    "flags": ["BROADCAST", "NOARP", "UP"],
    "addr_info": [{"local": "10.20.30.40"}],
}


@pytest.mark.parametrize(
    ("links", "nodes", "refused"),
    [
        ([ROUTED], 2, True),
        ([dict(ROUTED, flags=[], link_type="loopback"), {}], 2, True),
        ([ROUTED], 1, False),
        ([DUMMY], 2, False),
        ([ROUTED, DUMMY], 2, False),
    ],
)
def test_a_cluster_address_on_loopback_is_refused_where_others_take_part(params, links, nodes, refused):
    found = training_states.refusals(dict(params, nodes=nodes), Node(ip=json.dumps(links)))
    assert [one["code"] for one in found] == (["loopback_interface"] if refused else [])
    assert not refused or "127.0.0.1 of this node is on the loopback interface, on which no packet leaves" in describe(
        found[0]
    )


@pytest.mark.parametrize("printed", ["no JSON", None])
def test_an_address_that_ip_cannot_tell_of_is_left_to_the_libraries(params, printed):
    assert training_states.refusals(dict(params, address="192.0.2.1"), Node(ip=printed)) == []


def test_a_busy_rendezvous_port_is_refused(params):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen(1)
        port = other.getsockname()[1]
        found = training_states.refusals(dict(params, rendezvous=f"127.0.0.1:{port}"), Node())
    assert found == [problem("port_in_use", port)]


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        (LOOPBACK, "lo"),
        ("[{},{}]", None),
        ('[{"ifname":"a","addr_info":[{}]},{"ifname":"b","addr_info":[{}]}]', None),
        ("", None),
        ("garbage", None),
        (None, None),
    ],
)
def test_the_interface_is_the_one_that_carries_the_address(printed, name):
    assert training_states.interface("127.0.0.1", Node(ip=printed)) == name


def test_a_start_gives_the_script_its_interface(params, monkeypatch):
    created = []
    monkeypatch.setattr(training_run, "create", lambda *args: created.append(args))
    node = Node()
    assert training_states.start(params, node) == {"changed": True, "interface": "lo"}
    assert created[0][1:3] == ("unused", {"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "=lo"})
    assert "allreduce-train-r1.service" in " ".join(node.calls[-1])


def test_one_of_several_programs_is_enough(params):
    assert training_states.refusals(dict(params, programs=["/nowhere/mpirun", "/bin/sh"]), Node()) == []


def test_a_start_in_the_directory_of_a_run_stops_what_is_left_of_it_first(params, monkeypatch):
    renewed = []
    monkeypatch.setattr(training_run, "renew", lambda *args: renewed.append(args))
    node = Node()
    training_states.start(dict(params, again=True), node)
    assert renewed[0][1:3] == ("unused", {"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "=lo"})
    verbs = [" ".join(call[:2]) for call in node.calls]
    assert verbs.index("systemctl stop") < verbs.index("systemd-run --quiet")


def test_a_start_without_a_known_interface_leaves_the_choice_to_the_libraries(params, monkeypatch):
    created = []
    monkeypatch.setattr(training_run, "create", lambda *args: created.append(args))
    training_states.start(params, Node(ip=None))
    assert created[0][2] == {}


def test_a_start_without_what_it_needs_is_refused(params):
    with pytest.raises(RunError, match="nobody9"):
        training_states.start(dict(params, user="nobody9"), Node())


def test_a_poll_renews_the_lease_and_reports_why_the_rendezvous_is_out_of_reach(params, created):
    node = Node()
    found = training_states.poll(params, node)
    assert found["service"]["state"] == "running"
    assert found["rendezvous_error"] == "Connection refused"
    assert ["systemctl", "restart", "allreduce-train-r1-lease.timer"] in node.calls
    assert "end" not in found


def test_a_poll_with_an_interpreter_tells_the_versions_of_its_environment(params, created, tmp_path):
    site = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    for name in ("torch-2.13.0", "typing_extensions-4.15.0"):
        (site / (name + ".dist-info")).mkdir(parents=True)
        (site / (name + ".dist-info") / "RECORD").touch()
    (tmp_path / "env" / "pyvenv.cfg").write_text("version_info = 3.11.2\n")
    found = training_states.poll(dict(params, python=str(tmp_path / "env" / "bin" / "python")), Node())
    assert found["versions"] == {"torch": "2.13.0", "typing-extensions": "4.15.0", "python": "3.11.2"}
    assert "versions" not in training_states.poll(dict(params, python=None), Node())


def test_a_poll_asks_for_stacks_on_request(params, created, monkeypatch):
    logs = os.path.join(created, "logs")
    with open(os.path.join(logs, "rank0.json"), "w") as out:
        json.dump({"rank": 0, "world_size": 1, "started": 1.0}, out)
    with open(os.path.join(logs, "metrics.json"), "w"):
        os.utime(os.path.join(logs, "metrics.json"), (5, 5))
    asked = []
    monkeypatch.setattr(training_states.stacks, "stacks", lambda *args: asked.append(args) or {0: ["train.py:1 main"]})
    found = training_states.poll(params, Node())
    assert (asked, "stack" in found["ranks"][0], found["metrics_written"]) == ([], False, 5.0)
    found = training_states.poll(dict(params, stacks=True), Node())
    assert (asked, found["ranks"][0]["stack"]) == ([(logs, os.getuid(), [0])], ["train.py:1 main"])


def test_a_poll_returns_as_soon_as_the_service_ends(params, created):
    found = training_states.poll(dict(params, wait=30), Node(states=["running", "running", "exited"]))
    assert found["service"]["state"] == "succeeded"
    assert found["end"] == "exited with code 0"


def test_a_stop_returns_what_is_known_and_removes_only_on_request(params, created):
    logs = os.path.join(created, "logs")
    with open(os.path.join(logs, "rank0.json"), "w") as out:
        json.dump({"rank": 0, "world_size": 1, "started": 1.0}, out)
    with open(os.path.join(logs, "rank0.err"), "w") as out:
        out.write("boom\n")
    with open(os.path.join(logs, "rank0.cause"), "w") as out:
        out.write("torch.OutOfMemoryError\nbuiltins.RuntimeError")
    shutil.copy(os.path.join(os.path.dirname(__file__), "dumps", "absent-rank0"), os.path.join(logs, "flight-rank0"))
    found = training_states.stop(params, Node())
    assert found["flight"]["0"]["0"]["enqueued"] == 4
    assert found["exceptions"] == {"0": ["torch.OutOfMemoryError", "builtins.RuntimeError"]}
    assert found["changed"]
    assert found["tails"] == {"0": ["boom"], "agent": []}
    assert found["metrics"] is None
    assert os.path.isdir(created)
    found = training_states.stop(dict(params, remove=True), Node(states=["exited"]))
    assert not found["changed"]
    assert not os.path.isdir(created)


def test_a_full_disk_is_seen(params, created, monkeypatch):
    assert training_states.stop(params, Node())["disk_full"] is False
    monkeypatch.setattr(training_states, "_FULL_BELOW", float("inf"))
    assert training_states.stop(params, Node())["disk_full"] is True


def test_a_file_system_that_hangs_is_named_unless_the_run_succeeded(params, created, monkeypatch):
    mounts = [
        {"point": f"/{name}", "type": "nfs4", "source": "nfs-1:/data", "fault": fault}
        for name, fault in (("well", None), ("hangs", "silent"), ("stale", "ESTALE"))
    ]
    monkeypatch.setattr(training_states, "read_network_mounts", lambda tree: mounts)
    named = [
        "/hangs: nfs4 of nfs-1:/data does not answer within 5 s",
        "/stale: nfs4 of nfs-1:/data answers with ESTALE",
    ]
    assert training_states.stop(params, Node())["mount_faults"] == named
    assert training_states.stop(params, Node(states=["exited"]))["mount_faults"] == []
    with open(os.path.join(created, "logs", "rank0.json"), "w") as out:
        json.dump({"rank": 0, "world_size": 1, "started": 1.0}, out)
    assert training_states.poll(dict(params, stacks=True), Node())["mount_faults"] == named


@pytest.mark.parametrize(("fault", "answers", "refused"), [
    ("silent", False, True),
    ("silent", True, False),
    ("ESTALE", False, False),
    (None, False, False),
])  # fmt: skip
def test_an_environment_on_a_file_system_that_hangs_is_refused_and_not_waited_for(
    params, monkeypatch, fault, answers, refused
):
    mount = {"point": "/opt", "type": "nfs4", "source": "nfs-1:/opt", "fault": fault}
    monkeypatch.setattr(training_states, "read_network_mounts", lambda tree: [mount])
    monkeypatch.setattr(training_states, "bounded", lambda work, seconds: ([True] if answers else [], None))
    found = training_states.refusals(params, Node())
    assert [one["code"] for one in found] == ["environment_silent"] * refused
    if not refused:
        training_states.poll(params, Node())
        return
    assert "/opt: nfs4 of nfs-1:/opt does not answer within 5 s" in describe(found[0])
    monkeypatch.setattr(training_states, "read_versions", lambda *args: pytest.fail("it would wait"))
    with pytest.raises(RunError, match="cannot be reached on this node"):
        training_states.poll(params, Node())


def test_stopping_a_run_that_never_was_changes_nothing(params):
    found = training_states.stop(params, Node(states=["dead"]))
    assert found["ranks"] == []
    assert "logs" not in found


def test_a_run_id_never_leaves_the_directory(params):
    with pytest.raises(RunError, match="is not valid; use letters"):
        training_states.stop(dict(params, run_id="../../etc"), Node())


@pytest.mark.parametrize(("loaded", "codes"), [(False, ["fapolicyd_denies"]), (True, [])])
def test_an_interpreter_that_fapolicyd_would_deny_is_refused(params, monkeypatch, loaded, codes):
    found = {"active": True, "permissive": False, "rules": "equal", "loaded": loaded, "others": False}
    monkeypatch.setattr(training_states, "read_fapolicyd", lambda tree: found)
    monkeypatch.setattr(os.path, "isfile", lambda path: True)
    params["python"] = "/opt/allreduce/envs/main/bin/python"
    assert [one["code"] for one in training_states.refusals(params, Node())] == codes
