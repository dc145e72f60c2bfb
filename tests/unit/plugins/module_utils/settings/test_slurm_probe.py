# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the controller of a cluster is asked about a node, and what is made of its answers."""

import socket

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import slurm_probe
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree


def node(tmp_path, address="10.0.0.1"):
    tree(tmp_path, {"/run/slurm/conf/slurm.conf": "SlurmctldHost=sent"})
    path = tmp_path / slurm_probe.UNIT.lstrip("/")
    path.parent.mkdir(parents=True)
    path.write_text(f"[Service]\nEnvironment=SLURMD_OPTIONS=--conf-server={address}:6817\n", encoding="utf-8")
    return FileTree(str(tmp_path))


@pytest.mark.parametrize(("written", "address"), [("10.0.0.1", "10.0.0.1"), ("[fd00::1]", "fd00::1")])
def test_a_controller_that_answers(tmp_path, written, address):
    asked = []

    def run(arguments):
        asked.append(arguments)
        return "idle|gpu*|none\n"

    found = slurm_probe.ask(
        node(tmp_path, written), "gpu-1", run, reaches=lambda host, port: (host, port) == (address, 6817)
    )
    assert found == {
        "controller": address, "reachable": True, "accounting": False, "answers": True, "state": "idle", "reason": "none",
        "job": None,
    }  # fmt: skip
    assert "--nodes=gpu-1" in asked[0]


@pytest.mark.parametrize(("state", "runs"), [("idle", True), ("mixed", False), ("drained", False), ("", False)])
def test_a_job_is_run_on_an_idle_node_only(tmp_path, state, runs):
    found = slurm_probe.ask(
        node(tmp_path), "gpu-1", lambda arguments: f"{state}|batch|none\n",
        reaches=lambda *where: True, submit=lambda partition: {"seen": 4, "reason": partition},
    )  # fmt: skip
    assert found["job"] == ({"seen": 4, "reason": "batch"} if runs else None)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ((0, "seen=0,1,2,3\n"), {"seen": 4, "reason": ""}),
        ((0, "srun: job 7 has been allocated resources\nseen=MIG-a,MIG-b\n"), {"seen": 2, "reason": ""}),
        ((0, "seen=\n"), {"seen": 0, "reason": ""}),
        ((0, ""), {"seen": None, "reason": "it ended with 0"}),
        (
            (1, "srun: error: Unable to allocate\033[31m resources\n"),
            {"seen": None, "reason": "srun: error: Unable to allocate [31m resources"},
        ),
        ((1, "seen=0\n"), {"seen": None, "reason": "seen=0"}),
        ((124, ""), {"seen": None, "reason": "it ended with 124"}),
    ],
)
def test_what_a_job_sees(said, expected):
    asked = []

    def execute(arguments):
        asked.extend(arguments)
        return said

    lines = ["CPUs=8 Gres=gpu:nvidia_a100:2,gpu:a30:2", "Boards=1"]
    assert slurm_probe.run_job("gpu-1", "trainer", lines, execute) == expected
    assert asked[:4] == ["runuser", "--user", "trainer", "--"]
    assert not any(one.startswith("--partition") for one in asked)
    assert {"--nodelist=gpu-1", "--gres=gpu:4", "--immediate=30"} <= set(asked)


def test_a_node_without_gpus_is_asked_for_none():
    asked = []
    slurm_probe.run_job("gpu-1", "trainer", ["Boards=1"], lambda arguments: asked.extend(arguments) or (0, "seen="))
    assert not any(one.startswith("--gres") for one in asked)


def test_a_job_names_the_partition_of_a_node_that_is_not_in_the_default_one():
    asked = []
    slurm_probe.run_job("gpu-1", "trainer", [], lambda arguments: asked.extend(arguments) or (0, "seen="), "a100")
    assert "--partition=a100" in asked


def test_a_controller_that_is_down_is_not_waited_for(tmp_path):
    found = slurm_probe.ask(
        node(tmp_path), "gpu-1", lambda arguments: pytest.fail("asked"), reaches=lambda host, port: False
    )
    assert not found["reachable"] and not found["answers"]


def test_a_controller_that_refuses_the_node(tmp_path):
    found = slurm_probe.ask(
        node(tmp_path),
        "gpu-1",
        lambda words: "/usr/bin/sinfo" if words[0] == "sh" else None,
        reaches=lambda *where: True,
    )
    assert found["reachable"] and found["answers"] is False and found["state"] == ""


def test_a_node_that_has_no_program_to_ask_with(tmp_path):
    found = slurm_probe.ask(node(tmp_path), "gpu-1", lambda arguments: None, reaches=lambda host, port: True)
    assert found["reachable"] and found["answers"] is None


def test_a_node_that_was_sent_no_configuration_does_not_ask(tmp_path):
    files = {"/etc/default/slurmd": "SLURMD_OPTIONS=--conf-server=ctl"}

    def run(arguments):
        assert arguments[0] == "systemctl"
        return SHOWN % "$SLURMD_OPTIONS"

    found = slurm_probe.ask(tree(tmp_path, files), "gpu-1", run, reaches=lambda *where: True)
    assert (found["controller"], found["reachable"], found["answers"], found["state"]) == ("ctl", True, None, "")


def test_a_node_without_a_controller(tmp_path):
    found = slurm_probe.ask(
        FileTree(str(tmp_path)), "gpu-1", lambda arguments: None, reaches=lambda *where: pytest.fail("tried")
    )
    assert found["controller"] == "" and not found["reachable"]


SHOWN = """ExecStart={ path=/usr/sbin/slurmd ; argv[]=/usr/sbin/slurmd -D %s ; ignore_errors=no ; pid=0 ; code=(null) ; status=0/0 }
Environment=TMPDIR=/tmp
EnvironmentFiles=/etc/default/slurmd (ignore_errors=yes)
"""


@pytest.mark.parametrize(
    ("files", "options", "expected"),
    [
        ({}, "--conf-server ctl", [("ctl", 6817)]),
        ({}, "--conf-server=ctl:7000,[fd00::2],10.0.0.3:7", [("ctl", 7000), ("fd00::2", 6817), ("10.0.0.3", 7)]),
        ({"/etc/default/slurmd": "SLURMD_OPTIONS='--conf-server ctl:7000 -v'\n"}, "$SLURMD_OPTIONS", [("ctl", 7000)]),
        ({"/etc/default/slurmd": "SLURMD_OPTIONS=\n"}, "$SLURMD_OPTIONS", []),
        (
            {"/etc/slurm/slurm.conf": "ClusterName=a\nSlurmctldHost=one\nslurmctldhost = two(10.0.0.2)\n"},
            "",
            [("one", 6817), ("10.0.0.2", 6817)],
        ),
        (
            {"/etc/slurm/slurm.conf": "#SlurmctldHost=none\nSlurmctldHost=one\nSlurmctldPort=7000-7001\n"},
            "",
            [("one", 7000)],
        ),
        ({"/etc/slurm/slurm.conf": "Include a.conf", "/etc/slurm/a.conf": "SlurmctldHost=one"}, "", [("one", 6817)]),
        ({"/etc/slurm/slurm.conf": "SlurmctldHost=old"}, "--conf-server ctl", [("ctl", 6817)]),
        (
            {"/run/slurm/conf/slurm.conf": "SlurmctldHost=sent\nSlurmctldPort=7000"},
            "--conf-server ctl",
            [("sent", 7000)],
        ),
    ],
    ids=[
        "a unit",
        "several",
        "a file of options",
        "no options",
        "slurm.conf",
        "a port",
        "included",
        "options first",
        "sent",
    ],
)
def test_the_controller_of_a_cluster_of_others(tmp_path, files, options, expected):
    assert slurm_probe.find(tree(tmp_path, files), lambda words: SHOWN % options, "/etc/slurm") == expected


def test_the_one_of_several_that_answers_is_named(tmp_path):
    files = {"/etc/slurm/slurm.conf": "SlurmctldHost=one\nSlurmctldHost=two\n"}
    found = slurm_probe.ask(
        tree(tmp_path, files), "gpu-1", lambda words: "idle|gpu*|none", reaches=lambda host, port: host == "two"
    )
    assert (found["controller"], found["reachable"], found["accounting"], found["state"]) == (
        "two",
        True,
        False,
        "idle",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("idle|batch*|none\nidle|gpu|none\n", ("idle", "", "none")),
        ("idle|gpu|none\nidle|batch*|none\n", ("idle", "", "none")),
        ("idle|gpu|none\nidle|long|none\n", ("idle", "gpu", "none")),
        ("n/a|batch*|none\nidle|gpu|none\n", ("idle", "gpu", "none")),
        ("n/a|batch*|none\n", ("", "", "")),
        ("drained*|gpu*|a | b\n", ("drained*", "", "a | b")),
        ("down~|gpu*|\033[31mred\007\n", ("down", "", "[31mred")),
        ("draining|gpu*|" + "x" * 5000, ("draining", "", "x" * 200)),
        ("", ("", "", "")),
        ("sinfo: error\n", ("", "", "")),
        ("idle|none\n", ("", "", "")),
    ],
)
def test_what_is_read(text, expected):
    assert slurm_probe.parse_node(text) == expected


def test_a_port_is_tried():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(1)
        port = listening.getsockname()[1]
        assert slurm_probe.is_reachable("127.0.0.1", port)
    assert not slurm_probe.is_reachable("127.0.0.1", port)
    assert not slurm_probe.is_reachable("no address", 1)
