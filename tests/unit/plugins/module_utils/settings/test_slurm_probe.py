# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the controller of a cluster is asked about a node, and what is made of its answers."""

import socket

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import slurm_probe


def node(tmp_path, address="10.0.0.1"):
    path = tmp_path / slurm_probe.UNIT.lstrip("/")
    path.parent.mkdir(parents=True)
    path.write_text(f"[Service]\nEnvironment=SLURMD_OPTIONS=--conf-server={address}:6817\n", encoding="utf-8")
    return FileTree(str(tmp_path))


@pytest.mark.parametrize(("written", "address"), [("10.0.0.1", "10.0.0.1"), ("[fd00::1]", "fd00::1")])
def test_a_controller_that_answers(tmp_path, written, address):
    asked = []

    def run(arguments):
        asked.append(arguments)
        return "idle|none\n"

    found = slurm_probe.ask(node(tmp_path, written), "gpu-1", run, lambda host, port: (host, port) == (address, 6817))
    assert found == {
        "controller": address, "reachable": True, "accounting": False, "answers": True, "state": "idle", "reason": "none",
        "job": None,
    }  # fmt: skip
    assert "--nodes=gpu-1" in asked[0]


@pytest.mark.parametrize(("state", "runs"), [("idle", True), ("mixed", False), ("drained", False), ("", False)])
def test_a_job_is_run_on_an_idle_node_only(tmp_path, state, runs):
    found = slurm_probe.ask(
        node(tmp_path), "gpu-1", lambda arguments: f"{state}|none\n", lambda *where: True, lambda: {"seen": 4}
    )
    assert found["job"] == ({"seen": 4} if runs else None)


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
    assert {"--nodelist=gpu-1", "--gres=gpu:4", "--immediate=30"} <= set(asked)


def test_a_node_without_gpus_is_asked_for_none():
    asked = []
    slurm_probe.run_job("gpu-1", "trainer", ["Boards=1"], lambda arguments: asked.extend(arguments) or (0, "seen="))
    assert not any(one.startswith("--gres") for one in asked)


def test_a_controller_that_is_down_is_not_waited_for(tmp_path):
    found = slurm_probe.ask(node(tmp_path), "gpu-1", lambda arguments: pytest.fail("asked"), lambda host, port: False)
    assert not found["reachable"] and not found["answers"]


def test_a_controller_that_refuses_the_node(tmp_path):
    found = slurm_probe.ask(node(tmp_path), "gpu-1", lambda arguments: None, lambda host, port: True)
    assert found["reachable"] and not found["answers"] and found["state"] == ""


def test_a_node_without_a_controller(tmp_path):
    found = slurm_probe.ask(FileTree(str(tmp_path)), "gpu-1", lambda arguments: pytest.fail("asked"))
    assert found["controller"] == "" and not found["reachable"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("idle|none\nidle|none\n", ("idle", "none")),
        ("drained*|a | b\n", ("drained*", "a | b")),
        ("down~|\033[31mred\007\n", ("down", "[31mred")),
        ("draining|" + "x" * 5000, ("draining", "x" * 200)),
        ("", ("", "")),
        ("sinfo: error\n", ("", "")),
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
