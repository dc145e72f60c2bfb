# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of two followers, each in a thread's place: the test advances a clock and what the units answer."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.board import Board
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.follow import (
    Follower,
    Limits,
    UnitError,
    Unreachable,
    progress_line,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.job import Place
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.launchers.table import LAUNCHERS

ADDRESSES = {"gpu-1": "10.0.0.1", "gpu-2": "10.0.0.2", "gpu-3": "10.0.0.3"}


def service(state, exit_code=None):
    return {"state": state, "result": "", "exit_code": exit_code, "signal": None, "pid": 7}


VERSIONS = {"python": "3.11.2", "torch": "2.13.0", "numpy": "2.3.1", "filelock": "3.20.0", "sympy": "1.14.0"}


def rank(number, line="", last_output=None):
    return {"rank": number, "local_rank": 0, "world_size": 2, "attempt": 0, "started": 0.0,
            "last_output": last_output, "last_line": line}  # fmt: skip


HANGS = "/data: nfs4 of nfs-1:/data does not answer within 5 s"


class Machine:
    """A node: answers polls from a list of (seconds it takes, answer), then stays at the last one."""

    def __init__(self, clock, answers, start_error=None):
        self.clock, self.answers, self.start_error = clock, list(answers), start_error
        self.calls, self.places, self.last = [], [], {}
        self.ahead, self.versions = 0, VERSIONS

    def look(self):
        self.clock.now += 1
        return {"now": self.clock.now - 0.5 + self.ahead, "versions": self.versions}

    def start(self, place, generation):
        self.calls.append("start")
        self.places.append((place.nodes, generation))
        if self.start_error:
            raise self.start_error

    def poll(self, wait):
        self.calls.append("poll")
        self.clock.now += max(wait, 1)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        self.last = answer
        return {"now": self.clock.now, **answer}

    def stacks(self):
        self.calls.append("stacks")
        return {str(one["rank"]): [f"/x/train.py:{40 + one['rank']} step"] for one in self.last["ranks"]}, [HANGS]

    def stop(self):
        self.calls.append("stop")
        last = self.last
        good = last.get("service", {}).get("state") == "succeeded"
        agent = {"failures": last.get("failures", []), "error": None if good else "SignalException"}
        return {"service": service("absent"), "ranks": [], **last, "agent": agent, "now": self.clock.now}


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


WAITING = {"service": service("running"), "ranks": [], "rendezvous_error": None}
RUNNING = {"service": service("running"), "ranks": [rank(0, "epoch 1", 1e9)]}
DONE = {"service": service("succeeded", 0), "ranks": [rank(0, "epoch 2")]}
EXIT3 = {"service": service("failed", 1), "ranks": [rank(1)],
         "failures": [{"rank": 1, "local_rank": 0, "exit_code": 3, "time": 1003, "message": ""}]}  # fmt: skip


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def lines():
    return []


@pytest.fixture
def build(tmp_path, clock, lines):
    def make(
        node,
        answers,
        timeout=0,
        start_timeout=30,
        start_error=None,
        nodes=("gpu-1", "gpu-2"),
        min_nodes=None,
        told=(-1, 0.5),
        stall_timeout=0,
        launcher="torchrun",
        outage=0.0,
    ):
        place = Place(node, nodes, ADDRESSES, 29500)
        board = Board(tmp_path, node, place.nodes, clock)
        unit = Machine(clock, answers, start_error)
        limits = Limits(timeout, start_timeout, min_nodes=min_nodes, stall_timeout=stall_timeout, outage=outage)
        if told:
            for one in nodes:
                Board(tmp_path, one, nodes, clock).tell(told, VERSIONS)
        engine = LAUNCHERS[launcher]
        return Follower(place, board, unit, limits, lines.append, engine, clock, clock.sleep), unit, board

    return make


def test_a_run_that_succeeds_is_followed_to_its_end(build):
    first, unit, board = build("gpu-1", [WAITING, RUNNING, RUNNING, DONE])
    second, *dummy = build("gpu-2", [WAITING, DONE])
    assert first.run()["status"] == "succeeded"
    assert second.run()["status"] == "succeeded"
    assert unit.calls == ["start", "poll", "poll", "poll", "poll", "stop"]
    assert [outcome["node"] for outcome in first.gather()] == ["gpu-1", "gpu-2"]


def test_a_node_is_stopped_when_another_one_fails(build):
    second, *dummy = build("gpu-2", [WAITING, EXIT3])
    assert second.run()["status"] == "failed"
    first, unit, board = build("gpu-1", [RUNNING])
    board.post("starting")
    assert first.run()["status"] == "stopped"
    assert unit.calls[-1] == "stop"
    assert [outcome["status"] for outcome in second.gather()] == ["stopped", "failed"]


def test_a_node_is_not_started_after_another_one_failed(build):
    second, *dummy = build("gpu-2", [WAITING], start_error=UnitError("The user 'trainer' does not exist on this node."))
    outcome = second.run()
    assert outcome["failures"][0]["reason"] == "The user 'trainer' does not exist on this node"
    first, unit, board = build("gpu-1", [WAITING])
    first.run()
    assert "start" not in unit.calls


def test_an_unreachable_node_fails_and_is_not_stopped(build):
    follower, unit, dummy = build("gpu-2", [RUNNING, Unreachable("ssh: no route to host")])
    outcome = follower.run()
    assert outcome["unreachable"]
    assert outcome["failures"][0]["reason"] == "gpu-2 became unreachable (ssh: no route to host)"
    assert "stop" not in unit.calls


def test_a_node_whose_peer_falls_silent_is_stopped(build, clock):
    dummy, dummy, silent = build("gpu-2", [RUNNING])
    silent.post("running")
    follower, unit, dummy = build("gpu-1", [RUNNING])
    assert follower.run()["status"] == "stopped"
    outcomes = follower.gather()
    assert outcomes[-1]["failures"][0]["reason"] == "gpu-2 stopped answering while it was running"


class Late(Machine):
    """A node that is reached only after an outage; whether it counted as lost is noted."""

    def poll(self, wait):
        self._outage()
        return super().poll(wait)

    def stop(self):
        self._outage()
        return super().stop()

    def _outage(self):
        self.clock.now += 310
        self.lost.append(self.board.lost())


def test_a_node_is_not_lost_while_its_worker_tries_to_reach_it_again(build, clock):
    follower, unit, board = build("gpu-1", [RUNNING, DONE], nodes=("gpu-1",), outage=300)
    follower._unit = unit = Late(clock, unit.answers)
    unit.board, unit.lost = board, []
    assert follower.run()["status"] == "succeeded"
    assert unit.lost == [{}] * 3


def test_a_timeout_stops_the_run(build):
    dummy, dummy, peer = build("gpu-2", [RUNNING])
    peer.post("running", patience=1e6)
    follower, unit, dummy = build("gpu-1", [RUNNING], timeout=60)
    outcome = follower.run()
    assert outcome["failures"][0]["reason"] == "the run did not end within its timeout of 60 s"
    assert unit.calls[-1] == "stop"


def test_a_stalled_start_names_the_node_that_cannot_connect(build):
    dummy, dummy, peer = build("gpu-2", [RUNNING])
    peer.post("waiting", "timed out", patience=1e6)
    follower, *dummy = build("gpu-1", [WAITING])
    failure = follower.run()["failures"][0]
    assert failure["node"] == "gpu-2"
    assert failure["reason"].startswith(
        "after 30 s the rendezvous 10.0.0.1:29500 on gpu-1 cannot be reached from gpu-2 (timed out)"
    )


def queued(state, reason="None", ranks=()):
    job = {
        "id": 7,
        "state": state,
        "reason": reason,
        "restarts": 0,
        "limit": "",
        "expired": False,
        "code": "",
        "node": "",
    }
    return {**WAITING, "ranks": list(ranks), "job": job}


def test_a_job_that_does_not_begin_is_given_up_with_slurms_reason(build, lines):
    build("gpu-2", [RUNNING])[2].post("waiting", "refused", patience=1e6)
    follower, unit, dummy = build("gpu-1", [queued("PENDING", "Resources")], launcher="slurm")
    failure = follower.run()["failures"][0]
    assert (
        failure["reason"]
        == "Slurm's job 7 is still pending after 30 s (Resources); set train_start_timeout for a longer wait"
    )
    assert unit.calls[-1] == "stop"
    assert lines[0].endswith("s  job 7 is pending (Resources)")


def test_ranks_have_their_time_to_start_from_the_begin_of_the_job(build, clock):
    build("gpu-2", [RUNNING])[2].post("waiting", "refused", patience=1e6)
    waits = [queued("PENDING")] * 16 + [queued("RUNNING")] * 5
    follower, *dummy = build(
        "gpu-1", [*waits, {**DONE, "job": queued("COMPLETED")["job"]}], start_timeout=25, launcher="slurm"
    )
    began = clock.now
    assert follower.run()["status"] == "succeeded"
    assert clock.now - began > 30


def test_only_the_first_node_knows_why_the_ranks_of_a_job_do_not_start(build):
    build("gpu-1", [RUNNING])[2].post("running", patience=1e6)
    follower, unit, dummy = build("gpu-2", [WAITING] * 40 + [DONE], launcher="slurm")
    assert follower.run()["status"] == "succeeded"
    follower, *dummy = build("gpu-2", [WAITING] * 40 + [DONE])
    assert follower.run()["status"] == "failed"


def test_a_job_is_submitted_when_all_other_nodes_are_prepared(build, clock):
    other = build("gpu-2", [RUNNING])[2]
    other.post("starting", patience=1e6)
    follower, unit, board = build("gpu-1", [DONE], launcher="slurm")
    passed = clock.sleep

    def sleep(seconds):
        passed(seconds)
        if clock.now > 1100:
            other.post("waiting", patience=1e6)

    follower._sleep = sleep
    assert follower.run()["status"] == "succeeded"
    assert clock.now > 1100  # and meanwhile nobody took this node for lost
    assert unit.calls[0] == "start"


def test_no_job_is_submitted_where_another_node_failed_before(build):
    build("gpu-2", [WAITING], start_error=UnitError("no"))[0].run()
    follower, unit, dummy = build("gpu-1", [DONE], launcher="slurm")
    follower.run()
    assert "start" not in unit.calls


@pytest.mark.parametrize(
    ("ahead", "reason"),
    [
        (20, "the clock of gpu-2 is at least 19 s ahead of that of gpu-1, and c10d would leave the node out"),
        (-20, "the clock of gpu-2 is at least 18 s behind that of gpu-1, and c10d would leave the node out"),
        (8, None),
        (-11, None),  # as far as one can know
    ],
)
def test_a_node_whose_clock_c10d_would_not_bear_does_not_start(build, ahead, reason):
    build("gpu-1", [RUNNING])[2].post("running", patience=1e6)
    follower, unit, dummy = build("gpu-2", [WAITING, WAITING, DONE])
    unit.ahead = ahead
    failures = follower.run()["failures"]
    assert (failures[0]["reason"].partition(";")[0] if failures else None) == reason
    assert ("start" in unit.calls) is (reason is None)


def test_engines_that_compare_no_clocks_begin_whatever_they_say(build):
    build("gpu-1", [RUNNING])[2].post("running", patience=1e6)
    follower, unit, dummy = build("gpu-2", [WAITING, DONE])
    unit.ahead = 1000
    follower._launcher = LAUNCHERS["mpirun"]
    assert follower.run()["status"] == "succeeded"


@pytest.mark.parametrize("engine", ["torchrun", "mpirun"])
@pytest.mark.parametrize(
    ("own", "reason"),
    [
        ({"torch": "2.12.1"}, "torch 2.12.1, not 2.13.0"),
        ({"python": "3.12.1", "numpy": "1.26.4"}, "numpy 1.26.4, not 2.3.1; python 3.12.1, not 3.11.2"),
        (dict.fromkeys(VERSIONS, "0"), "filelock 0, not 3.20.0; numpy 0, not 2.3.1; python 0, not 3.11.2 (and 2 more)"),
        ({"a-tool-of-somebody": "1.0"}, None),
    ],
)
def test_a_node_with_other_versions_than_the_first_does_not_start(build, own, reason, engine):
    build("gpu-1", [RUNNING])[2].post("running", patience=1e6)
    follower, unit, dummy = build("gpu-2", [WAITING, WAITING, DONE])
    unit.versions, follower._launcher = {**VERSIONS, **own}, LAUNCHERS[engine]
    failures = follower.run()["failures"]
    expected = f"the environment of gpu-2 has {reason} as on gpu-1; run playbook site.yml on both" if reason else None
    assert (failures[0]["reason"] if failures else None) == expected
    assert ("start" in unit.calls) is (reason is None)


def test_a_node_does_not_start_where_another_one_is_refused(build, tmp_path, clock):
    first, unit, board = build("gpu-1", [RUNNING])
    other = Board(tmp_path, "gpu-2", ("gpu-1", "gpu-2"), clock)
    other.tell((-1, 0.5), {**VERSIONS, "torch": "2.12.1"})
    other.post("starting", patience=40)
    began = clock.now
    assert first.run()["status"] == "stopped"
    assert "start" not in unit.calls
    assert clock.now - began >= 40  # the other's worker never said that it failed


def test_a_run_that_may_lose_a_node_starts_without_the_one_that_is_refused(build, tmp_path, clock):
    first, unit, board = build("gpu-1", [DONE], min_nodes=1)
    Board(tmp_path, "gpu-2", ("gpu-1", "gpu-2"), clock).tell((-1, 0.5), {**VERSIONS, "torch": "2.12.1"})
    assert first.run()["status"] == "succeeded"
    assert "start" in unit.calls


def test_a_node_waits_for_the_clock_of_the_first_until_that_is_lost(build, clock):
    build("gpu-1", [RUNNING], told=None)[2].post("starting", patience=40)
    follower, unit, dummy = build("gpu-2", [RUNNING], told=None)
    began = clock.now
    assert follower.run()["status"] == "stopped"
    assert clock.now - began >= 40


def test_time_in_which_a_peer_still_uploads_is_no_stall(build, clock):
    dummy, dummy, peer = build("gpu-2", [RUNNING])
    peer.post("starting", patience=500)
    follower, *dummy = build("gpu-1", [WAITING])
    began = clock.now
    follower.run()
    assert clock.now - began > 500


def test_an_abort_stops_the_node_and_leaves_the_reason(build):
    follower, unit, board = build("gpu-1", [RUNNING])
    board.post("running")
    assert follower.abort("the run was interrupted")["failures"][0]["reason"] == "the run was interrupted"
    assert unit.calls == ["stop"]
    assert board.outcomes()[0]["status"] == "failed"


TWO = {"service": service("running"), "ranks": [rank(number, "epoch 1", 1e9) for number in (0, 1)]}


@pytest.mark.parametrize("other", ["tells", "is late"])
def test_a_run_in_which_no_rank_writes_names_them_at_doubling_intervals(build, lines, clock, other):
    dummy, dummy, peer = build("gpu-2", [RUNNING])
    peer.post("running", patience=1e6, written={"2": 1000.0})
    follower, unit, board = build("gpu-1", [TWO] * 110 + [DONE], stall_timeout=60)
    tell = peer.tell_stacks

    def stacks():
        unit.calls.append("stacks")
        if other == "tells":
            tell({"2": ["/x/train.py:7 load"]}, [HANGS])
        return {"0": ["/x/train.py:40 step"], "1": ["/x/train.py:40 step"]}, [HANGS]

    unit.stacks = stacks
    follower.run()
    heads = [line for line in lines if "no rank has written" in line]
    assert [int(line.split(" for ")[1].split(" s")[0]) // 10 for line in heads] == [6, 12, 24]
    assert heads[0].endswith("; behind: rank 2 on gpu-2" if other == "tells" else " s")
    assert ("  in x/train.py:7 load: rank 2 on gpu-2" in lines) is (other == "tells")
    assert "  in x/train.py:40 step: rank 0 on gpu-1 and rank 1 on gpu-1" in lines
    assert sum("rank 0: epoch 1" in line for line in lines) <= 6  # not repeated for ever
    assert unit.calls.count("stacks") == 3
    assert lines.count(f"  {HANGS}, on {'gpu-1, gpu-2' if other == 'tells' else 'gpu-1'}") == 3


def test_a_run_that_goes_on_is_silent_no_longer(build, lines):
    later = {"service": service("running"), "ranks": [rank(0, "epoch 2", 2e9)]}
    follower, unit, board = build("gpu-1", [RUNNING] * 30 + [later] * 5 + [DONE], stall_timeout=60, nodes=("gpu-1",))
    follower.run()
    assert [line.split("  ")[-1] for line in lines if "write again" in line] == ["ranks write again"]
    assert board.silence() == ""


@pytest.mark.parametrize("key", ["last_output", "metrics_written", "started"])
def test_what_counts_as_written(build, lines, key):
    answers = []
    for number in range(60):
        one = {**rank(0, "epoch 1", 5.0), **({key: float(number)} if key != "metrics_written" else {})}
        answers.append(
            {
                "service": service("running"),
                "ranks": [one],
                "metrics_written": float(number) if key == "metrics_written" else 1.0,
            }
        )
    follower, unit, dummy = build("gpu-1", [*answers, DONE], stall_timeout=60, nodes=("gpu-1",))
    follower.run()
    assert "stacks" not in unit.calls


def test_ranks_that_have_other_numbers_now_are_written_of_no_longer(build):
    follower, unit, board = build("gpu-1", [{**RUNNING, "ranks": [rank(1)]}, RUNNING, DONE], nodes=("gpu-1",))
    told = []
    board.post = lambda *args, **more: told.append(more.get("written"))
    follower.run()
    assert [sorted(one) for one in told if one] == [["1"], ["0"], ["0"]]


def test_a_node_that_only_follows_tells_where_its_ranks_are(build, lines):
    dummy, dummy, first = build("gpu-1", [RUNNING])
    first.post("running", patience=1e6, written={"0": 1000.0})
    follower, unit, board = build("gpu-2", [TWO] * 30 + [DONE], stall_timeout=60)
    follower.run()
    found = board.stacks(0.0)["gpu-2"]
    assert (found["stacks"], found["mounts"]) == ({"0": ["/x/train.py:40 step"], "1": ["/x/train.py:41 step"]}, [HANGS])
    assert not any("no rank has written" in line for line in lines)


def test_a_run_that_is_never_to_be_watched(build, lines):
    follower, unit, dummy = build("gpu-1", [RUNNING] * 300 + [DONE], nodes=("gpu-1",))
    follower.run()
    assert "stacks" not in unit.calls
    assert lines[-1].endswith("gpu-1 rank 0: epoch 1")


def test_the_end_of_a_timeout_names_who_was_behind(build):
    follower, unit, dummy = build("gpu-1", [TWO], timeout=100, stall_timeout=60, nodes=("gpu-1",))
    reason = follower.run()["failures"][0]["reason"]
    assert reason.startswith("the run did not end within its timeout of 100 s; no rank has written anything for 6")
    assert reason.endswith("; behind: rank 0 on gpu-1")


def test_progress_is_shown_every_ten_seconds(build, lines):
    dummy, dummy, peer = build("gpu-2", [RUNNING])
    peer.post("running", patience=1e6)
    follower, *dummy = build("gpu-1", [RUNNING] * 20 + [DONE])
    follower.run()
    assert lines[0] == "  10 s  gpu-1 rank 0: epoch 1"
    assert 3 <= len(lines) <= 6


LOST = {"node": "gpu-1", "status": "failed", "failures": []}
CUT_OFF = {"service": service("failed", 1), "ranks": [rank(1)],
           "failures": [{"rank": 1, "local_rank": 0, "exit_code": 1, "time": 1003, "message": "Connection closed by peer"}]}  # fmt: skip
THREE = ("gpu-1", "gpu-2", "gpu-3")


class Telling(Machine):
    """A node during whose nth call of a kind something happens elsewhere."""

    def __init__(self, machine, name, number, event):
        super().__init__(machine.clock, machine.answers)
        self.name, self.number, self.event = name, number, event

    def poll(self, wait):
        return self._told("poll", super().poll(wait))

    def stop(self):
        return self._told("stop", super().stop())

    def _told(self, name, answer):
        if name == self.name and self.calls.count(name) == self.number:
            self.event()
        return answer


@pytest.mark.parametrize(
    ("answers", "when"),
    [([RUNNING] * 3 + [DONE], ("poll", 2)), ([RUNNING, CUT_OFF, RUNNING, DONE], ("stop", 1))],
    ids=["before", "after"],
)
def test_a_node_starts_again_when_the_one_with_the_rendezvous_is_lost(build, answers, when):
    """Whether its own ranks end before the loss is known or after."""
    follower, unit, board = build("gpu-2", answers, nodes=THREE, min_nodes=2)
    dummy, dummy, first = build("gpu-1", [RUNNING], nodes=THREE)
    dummy, dummy, third = build("gpu-3", [RUNNING], nodes=THREE)
    third.post("running", patience=1e6)
    first.post("running", patience=1e6)
    follower._unit = Telling(unit, *when, lambda: first.post("ended", outcome=LOST))
    assert follower.run()["status"] == "succeeded"
    assert follower._unit.places == [(THREE, 0), (("gpu-2", "gpu-3"), 1)]


def test_a_run_that_may_lose_a_node_goes_on_without_one_that_is_not_the_first(build):
    follower, unit, dummy = build("gpu-1", [RUNNING] * 5 + [DONE], min_nodes=1)
    dummy, dummy, second = build("gpu-2", [RUNNING])
    second.post("ended", outcome={**LOST, "node": "gpu-2"})
    assert follower.run()["status"] == "succeeded"
    assert len(unit.places) == 1


def test_a_run_stops_when_too_few_nodes_are_left(build):
    follower, unit, dummy = build("gpu-3", [RUNNING], nodes=THREE, min_nodes=2)
    for node in THREE[:2]:
        build(node, [RUNNING])[2].post("ended", outcome={**LOST, "node": node})
    assert follower.run()["status"] == "stopped"


def test_a_node_that_only_lost_its_peer_gives_up_when_the_rendezvous_stays(build, clock):
    follower, unit, dummy = build("gpu-2", [RUNNING, CUT_OFF], min_nodes=1)
    build("gpu-1", [RUNNING])[2].post("running", patience=1e6)
    began = clock.now
    assert follower.run()["status"] == "failed"
    assert (len(unit.places), clock.now - began > 100) == (1, True)


def test_a_rank_that_fails_by_itself_is_not_started_again_elsewhere(build, clock):
    follower, unit, dummy = build("gpu-2", [RUNNING, EXIT3], min_nodes=1)
    build("gpu-1", [RUNNING])[2].post("ended", outcome=LOST)
    follower._headless = lambda: False
    assert follower.run()["failures"][0]["exit_code"] == 3
    assert (len(unit.places), clock.now < 1100) == (1, True)


FIRST = Place("gpu-1", ("gpu-1", "gpu-2"), ADDRESSES, 29500)
ALONE = Place("gpu-1", ("gpu-1",), {"gpu-1": ADDRESSES["gpu-1"]}, 29500)
SECOND = Place("gpu-2", ("gpu-1", "gpu-2"), ADDRESSES, 29500)


@pytest.mark.parametrize(
    ("seen", "place", "line"),
    [
        ({"ranks": []}, FIRST, "  30 s  gpu-1 waits for ranks to start on 2 nodes"),
        ({"ranks": []}, ALONE, "  30 s  gpu-1 waits for ranks to start on 1 node"),
        ({"ranks": []}, SECOND, None),
        ({"ranks": [rank(1)]}, SECOND, None),
        ({**queued("PENDING", "Resources"), "ranks": [rank(0)]}, FIRST, "  30 s  job 7 is pending (Resources)"),
        ({"ranks": [rank(0)], "now": 20.0}, SECOND, "  30 s  gpu-2 rank 0: (no output yet)"),
        ({"ranks": [rank(0, "a\x1b[1mb", 5.0)], "now": 9.0}, FIRST, "  30 s  gpu-1 rank 0: a[1mb"),
        ({"ranks": [rank(0, "x", 5.0)], "now": 95.0}, FIRST, "  30 s  gpu-1 rank 0: x (silent for 90 s)"),
    ],
)
def test_progress_lines(seen, place, line):
    assert progress_line(seen, place, 30.2) == line
