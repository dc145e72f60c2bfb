# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.board import PATIENCE, Board, explain_stall

NODES = ["gpu-1", "gpu-2"]


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def boards(tmp_path, clock):
    return [Board(tmp_path, node, NODES, clock) for node in NODES]


def test_a_worker_reads_what_the_others_posted(boards):
    boards[0].post("waiting", "Connection refused")
    assert boards[1].read()["gpu-1"]["rendezvous_error"] == "Connection refused"
    assert boards[1].read()["gpu-2"] is None


def test_what_has_not_changed_is_not_read_again(boards, monkeypatch):
    """A thousand workers that read a thousand files ten times at each look would keep a hundred processors busy."""
    for board in boards:
        board.post("running")
    read = []
    monkeypatch.setattr(Path, "read_text", lambda path, **more: read.append(path.name) or path.read_bytes().decode())
    for _dummy in range(3):
        assert boards[0].failed() == []
    assert read == ["gpu-1.json", "gpu-2.json"]
    boards[1].post("waiting")
    assert boards[0].read()["gpu-2"]["phase"] == "waiting"
    assert read[2:] == ["gpu-2.json"]


def test_all_have_started_when_no_unit_is_still_to_start(boards):
    boards[0].post("running")
    assert not boards[0].all_started()
    boards[1].post("starting")
    assert not boards[0].all_started()
    boards[1].post("waiting")
    assert boards[0].all_started()


def test_a_failed_outcome_names_the_peer(boards):
    boards[0].post("ended", outcome={"node": "gpu-1", "status": "stopped"})
    assert boards[1].failed() == []
    boards[1].post("ended", outcome={"node": "gpu-2", "status": "failed"})
    assert boards[0].failed() == ["gpu-2"]
    assert [outcome["node"] for outcome in boards[0].outcomes()] == NODES


def test_nodes_that_ended_or_are_lost_are_not_waited_for(boards, clock):
    assert boards[0].awaited() == NODES
    boards[0].tell((0, 1), {})
    boards[1].post("starting", patience=10)
    assert boards[0].awaited() == ["gpu-2"]
    clock.now += 11
    assert boards[0].awaited() == []
    boards[1].post("ended", outcome={"node": "gpu-2", "status": "stopped"})
    assert boards[0].awaited() == []


def test_a_worker_that_never_writes_is_lost(boards, clock):
    boards[0].post("waiting", patience=10 * PATIENCE)
    clock.now += PATIENCE + 1
    assert boards[0].failed() == ["gpu-2"]
    assert boards[0].lost() == {"gpu-2": "gpu-2 never began its part of the run"}


def test_a_worker_that_stops_writing_is_lost_after_the_patience_it_asked_for(boards, clock):
    boards[0].post("running")
    boards[1].post("starting", patience=3 * PATIENCE)
    clock.now += PATIENCE + 1
    assert boards[1].lost() == {"gpu-1": "gpu-1 stopped answering while it was running"}
    clock.now += 2 * PATIENCE
    assert set(boards[0].lost()) == {"gpu-1", "gpu-2"}


def test_a_node_that_has_ended_is_never_lost(boards, clock):
    for board, node in zip(boards, NODES, strict=True):
        board.post("ended", outcome={"node": node, "status": "succeeded"})
    clock.now += 100 * PATIENCE
    assert boards[0].lost() == {}


def test_a_stall_names_the_first_node_when_it_does_not_listen():
    states = {"gpu-1": {"rendezvous_error": "Connection refused"}, "gpu-2": {"rendezvous_error": "Connection refused"}}
    assert explain_stall(states, "gpu-1", "10.0.0.1:29500", 120) == (
        "gpu-1",
        "gpu-1 does not listen on the rendezvous 10.0.0.1:29500 after 120 s (Connection refused)",
    )


def test_a_stall_names_the_node_that_cannot_reach_the_rendezvous():
    states = {"gpu-1": {"rendezvous_error": None}, "gpu-2": {"rendezvous_error": "timed out"}, "gpu-3": None}
    node, text = explain_stall(states, "gpu-1", "10.0.0.1:29500", 120)
    assert node == "gpu-2"
    assert text.startswith(
        "after 120 s the rendezvous 10.0.0.1:29500 on gpu-1 cannot be reached from gpu-2 (timed out);"
    )


def test_a_stall_without_a_visible_reason_says_so():
    dummy, text = explain_stall({"gpu-1": {"rendezvous_error": None}}, "gpu-1", "10.0.0.1:29500", 120)
    assert text.startswith("torchrun has started no rank after 120 s although all nodes reach")


def test_nobody_looked_for_a_rendezvous_that_the_launcher_does_not_have():
    found = explain_stall({"gpu-1": {"rendezvous_error": "Connection refused"}}, "gpu-1", "", 120, "mpirun")
    assert found == ("gpu-1", "mpirun has started no rank after 120 s")


def test_a_node_that_was_lost_while_it_started_holds_nobody_up(boards):
    boards[0].post("starting")
    boards[1].post("waiting")
    assert not boards[1].all_started()
    boards[0].post("ended", outcome={"node": "gpu-1", "status": "failed"})
    assert boards[1].all_started()
