# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One worker's part in a run: start its node's unit, follow it, stop it when too many nodes fail, gather the outcomes.

A run that may lose nodes goes on among the others by itself, except when it loses the first, which holds the
rendezvous: then every worker that is left starts its node again, with the next node as the first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from . import outcome as outcomes
from . import queue, silence
from .board import PATIENCE, Board, explain_clock, explain_stall, explain_versions
from .job import Launcher, Place
from .launchers.table import LAUNCHERS

# Seconds between two lines of progress, and between two looks at a node; mistakes show early, so short at first.
PROGRESS_EVERY = 10.0
FIRST_WAIT, WAIT, FIRST_PHASE = 1.0, 4.0, 15.0
# Stopping takes up to 15 s on the node (systemd_unit.py), more where it is slow.
STOP_PATIENCE = 120.0
# A node that does not answer is tried again for half a lease, and a worker that says nothing is believed for a while.
VERDICT_PATIENCE = 120.0
# For the other workers to ask their nodes for stacks; shorter than half of the shortest lease.
STACKS_PATIENCE = 8.0


class Unreachable(Exception):
    """The node does not answer; the text says why."""


class Unit(Protocol):
    """The node's unit, remotely; each call may raise Unreachable or UnitError."""

    def look(self) -> Mapping: ...

    def start(self, place: Place, generation: int) -> Mapping: ...

    def poll(self, wait: float) -> Mapping: ...

    def stacks(self) -> tuple[Mapping[str, list[str]], Sequence[str]]: ...

    def stop(self) -> Mapping: ...


class UnitError(Exception):
    """The node refused; one sentence."""


@dataclass(frozen=True)
class Limits:
    """Seconds; 0 means no limit. The run has failed when fewer than min_nodes are left, by default when one is lost."""

    timeout: int
    start_timeout: int
    upload_patience: float = 60.0
    min_nodes: int | None = None
    stall_timeout: int = 0  # after which ranks that write nothing are named; 0 for never
    outage: float = 0.0  # in which the unit tries again to reach its node


class Follower:
    """Follows one node from start to end."""

    def __init__(
        self,
        place: Place,
        board: Board,
        unit: Unit,
        limits: Limits,
        show: Callable[[str], None],
        launcher: Launcher = LAUNCHERS["torchrun"],
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ):
        self._place, self._board, self._unit, self._limits = place, board, unit, limits
        self._show, self._clock, self._sleep = show, clock, sleep
        self._launcher, self._nodes, self._generation = launcher, place.nodes, 0
        self._began = self._clock()
        self._shown = self._began
        self._written: dict[str, tuple[object, float]] = {}  # of each rank: what was seen of it last, and since when
        self._patience = float(limits.stall_timeout)
        self._waited = False
        self.stopped: Mapping = {}

    def run(self) -> dict:
        """Start, follow, stop; returns this node's outcome, which is on the board then too."""
        try:
            outcome = self._run()
        except Unreachable as error:
            # Its unit ends by itself when the lease runs out.
            outcome = self._lost(f"{self._place.node} became unreachable ({error})")
            outcome["unreachable"] = True
        except UnitError as error:
            outcome = self._lost(str(error))
        self._board.post("ended", outcome=outcome)
        return outcome

    def abort(self, reason: str) -> dict:
        """Stop at once because the controller's task ends; the reason is a phrase."""
        try:
            outcome = self._stop(reason)
        except (Unreachable, UnitError):
            outcome = self._lost(reason)
        self._board.post("ended", outcome=outcome)
        return outcome

    def gather(self) -> list[dict]:
        """Return the outcomes of all nodes, once each has ended or is lost."""
        while len(found := self._board.outcomes()) < len(self._nodes):
            lost = self._board.lost()
            if len(found) + len(lost) >= len(self._nodes):
                return found + [outcomes.lost_outcome(n, self._began, self._clock(), why) for n, why in lost.items()]
            self._sleep(0.5)
        return found

    def _run(self) -> dict:
        self._board.post("starting", patience=self._limits.upload_patience)
        unlike = self._compare()
        if self._place.node in unlike:
            return self._lost(unlike[self._place.node])
        while len(self._nodes) - len(unlike) < self._least() and not self._too_few():
            self._sleep(0.2)  # until their workers have said so
        if self._too_few():
            return self._stop("")
        outcome = self._attempt()
        while outcome is None:
            self._place = replace(self._place, nodes=self._left())
            self._generation += 1
            self._show(f"{self._place.node} starts again, with the rendezvous on {self._place.nodes[0]}")
            self._board.post("starting", patience=self._limits.upload_patience)
            outcome = self._attempt()
        return outcome

    def _compare(self) -> dict[str, str]:
        """Return the nodes that must not start, with the reason as a phrase: their clocks or packages are not the first node's.

        Every worker waits for all others, and comes to the same.
        """
        if len(self._nodes) == 1:
            return {}
        asked = self._clock()
        seen = self._unit.look()
        self._board.tell((seen["now"] - self._clock(), seen["now"] - asked), seen["versions"])
        while self._board.awaited():
            self._sleep(0.2)
        return {node: phrase for node in self._nodes if (phrase := self._unlike(node))}

    def _unlike(self, node: str) -> str | None:
        """Only c10d compares clocks."""
        first = self._nodes[0]
        late = explain_clock(self._board, first, node) if self._launcher.listens else None
        return late or explain_versions(self._board, first, node)

    def _attempt(self) -> dict | None:
        """Start and follow; returns None where the node is to start again without the one that held the rendezvous."""
        if self._launcher.queued and self._place.is_first:
            self._wait_for_others()
            if self._too_few():
                return self._stop("")
        self._unit.start(self._place, self._generation)
        ready = self._clock()
        self._board.post("waiting", patience=PATIENCE + self._limits.outage)
        while True:
            seen = self._unit.poll(FIRST_WAIT if self._clock() - self._began < FIRST_PHASE else WAIT)
            written = self._note_written(seen)
            phase = "running" if seen["ranks"] else "waiting"
            patience = PATIENCE + self._limits.outage
            self._board.post(phase, seen.get("rendezvous_error"), patience=patience, written=written)
            if seen["service"]["state"] != "running":
                outcome = self._stop(None)
                return None if self._only_lost_peer(outcome) and self._wait_for_verdict() else outcome
            if self._too_few():
                return self._stop("")
            if self._headless():
                return None
            if not self._board.all_started() or self._leaves_queue(seen):
                ready = self._clock()
            culprit, cause = self._cause(seen, ready)
            if cause:
                return self._stop(cause, culprit)
            if not self._silence():
                self._progress(seen)

    def _wait_for_others(self) -> None:
        """Wait until all other nodes are prepared, since a job begins on all of them at once."""
        while not self._board.all_started(self._place.node) and not self._too_few():
            self._board.post("starting", patience=self._limits.upload_patience)
            self._sleep(0.2)

    def _leaves_queue(self, seen: Mapping) -> bool:
        """Return True if the scheduler's job has just begun: its ranks have their time to start from then on."""
        before, self._waited = self._waited, queue.is_waiting(seen.get("job"))
        return before and not self._waited

    def _left(self) -> tuple[str, ...]:
        failed = self._board.failed()
        return tuple(node for node in self._place.nodes if node not in failed)

    def _least(self) -> int:
        least = self._limits.min_nodes
        return len(self._place.nodes) if least is None else least

    def _too_few(self) -> bool:
        return len(self._left()) < self._least()

    def _headless(self) -> bool:
        """Return True if the node that held the rendezvous is lost, and enough others are left."""
        return self._place.nodes[0] not in self._left() and not self._too_few()

    def _only_lost_peer(self, outcome: Mapping) -> bool:
        """Return True if this node failed for nothing but the loss of another, in a run that may lose some."""
        may_lose = (self._limits.min_nodes or len(self._nodes)) < len(self._place.nodes)
        if self._place.is_first or not may_lose:
            return False
        return outcome["status"] == "failed" and all(one["lost_peer"] for one in outcome["failures"])

    def _wait_for_verdict(self) -> bool:
        """Wait until the board tells whether the rendezvous' node is lost, which its own worker knows last."""
        until = self._clock() + VERDICT_PATIENCE
        while self._clock() < until and not self._too_few():
            self._board.post("running")
            if self._headless():
                return True
            self._sleep(1)
        return False

    def _cause(self, seen: Mapping, ready: float) -> tuple[str, str | None]:
        """(node to look at, phrase) why this node's worker ends a run that goes on; the phrase is None to go on."""
        limits = self._limits
        if limits.timeout and self._clock() - self._began > limits.timeout:
            behind = self._board.silence()
            return self._place.node, f"the run did not end within its timeout of {limits.timeout} s" + (
                f"; {behind}" if behind else ""
            )
        judges = self._place.is_first or not self._launcher.queued  # only the first node knows of the job
        if judges and not seen["ranks"] and self._clock() - ready > limits.start_timeout:
            if self._waited:
                return self._place.node, queue.describe_waiting(seen["job"], limits.start_timeout)
            first = self._place.nodes[0]
            where = self._place.rendezvous if self._launcher.listens else ""
            return explain_stall(self._board.read(), first, where, limits.start_timeout, self._launcher.engine)
        return self._place.node, None

    def _stop(self, cause: str | None, culprit: str | None = None) -> dict:
        """Arguments as of outcome.node_outcome."""
        self._board.post("running", patience=STOP_PATIENCE + self._limits.outage)
        self.stopped = self._unit.stop()
        return outcomes.node_outcome(
            self._place.node, self._began, self.stopped, self._clock(), cause, culprit, self._launcher.engine
        )

    def _lost(self, reason: str) -> dict:
        return outcomes.lost_outcome(self._place.node, self._began, self._clock(), reason.rstrip("."))

    def _note_written(self, seen: Mapping) -> dict[str, float]:
        """Return when each rank of this node was last seen to have written something, or to have started."""
        for rank in seen["ranks"]:
            last = (rank["started"], rank["last_output"], seen.get("metrics_written") if rank["rank"] == 0 else None)
            if self._written.get(str(rank["rank"]), (None,))[0] != last:
                self._written[str(rank["rank"])] = (last, self._clock())
        # A rank that is not there any more has another number since it started again.
        return {str(rank["rank"]): self._written[str(rank["rank"])][1] for rank in seen["ranks"]}

    def _silence(self) -> bool:
        """Name the ranks that hold up a run in which none writes, at doubling intervals; return whether that is so."""
        states = {node: state for node, state in self._board.read().items() if state and not state["outcome"]}
        ranks = silence.ranks_of(states, {})
        quiet = self._clock() - max((one.written for one in ranks), default=self._clock())
        leads = self._place.node == self._left()[0]
        if not self._limits.stall_timeout or quiet < self._limits.stall_timeout:
            if self._patience > self._limits.stall_timeout and leads:
                self._board.tell_silence("")
                self._show(f"{self._clock() - self._began:4.0f} s  ranks write again")
            self._patience = float(self._limits.stall_timeout)
            return False
        if quiet >= self._patience:
            while self._patience <= quiet:
                self._patience *= 2
            asked = self._clock()
            self._board.tell_stacks(*self._unit.stacks())
            if leads:
                self._explain_silence(states, asked, quiet)
        return True

    def _explain_silence(self, states: Mapping[str, Mapping], asked: float, quiet: float) -> None:
        """Show it, once all nodes have told where their ranks are, or had the time to."""
        until = asked + STACKS_PATIENCE
        while len(told := self._board.stacks(asked - STACKS_PATIENCE)) < len(states) and self._clock() < until:
            self._sleep(0.5)
        stacks = {node: one["stacks"] for node, one in told.items()}
        first, *more = silence.explain(silence.ranks_of(states, stacks), quiet)
        more += silence.explain_mounts({node: one["mounts"] for node, one in told.items()})
        self._board.tell_silence(first)
        for line in (f"{self._clock() - self._began:4.0f} s  {first}", *more):
            self._show(line)

    def _progress(self, seen: Mapping) -> None:
        now = self._clock()
        if now - self._shown < PROGRESS_EVERY:
            return
        line = progress_line(seen, self._place, now - self._began)
        if line:
            self._shown = now
            self._show(line)


def progress_line(seen: Mapping, place: Place, elapsed: float) -> str | None:
    """Return the line to show of this node: rank 0's last line, or that the first node or its job waits; None for all others."""
    if queue.is_waiting(seen.get("job")):
        return f"{elapsed:4.0f} s  {queue.describe_waiting(seen['job'])}"
    if not seen["ranks"]:
        count = len(place.nodes)
        where = f"{count} node{'s' * (count != 1)}"
        return f"{elapsed:4.0f} s  {place.node} waits for ranks to start on {where}" if place.is_first else None
    rank = next((rank for rank in seen["ranks"] if rank["rank"] == 0), None)
    if rank is None:
        return None
    silent = seen["now"] - (rank["last_output"] or rank["started"])
    text = "".join(char for char in rank["last_line"] if char.isprintable()) or "(no output yet)"
    note = f" (silent for {silent:.0f} s)" if silent > 6 * PROGRESS_EVERY else ""
    return f"{elapsed:4.0f} s  {place.node} rank 0: {text}{note}"
