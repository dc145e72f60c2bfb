# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's unit (follow.Unit) through module training_unit, and what travels to the node for it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from ..documents.parsing import DocumentError
from ..problems.problem import Problem
from ..problems.text import describe
from ..topology.nics import crowded, rank_binding
from . import request
from .answers import harmless, read_answer
from .follow import UnitError, Unreachable
from .interrupts import Interrupts
from .job import Job, Launcher, Place

RUNS = "/var/lib/allreduce/runs"
LONGEST = 300  # characters of a sentence about an answer


class Node(Protocol):
    """The calls that reach the node; each may raise Unreachable or UnitError."""

    def execute(self, arguments: Mapping, task_vars: Mapping) -> dict: ...

    def upload(self, data: bytes) -> str: ...


def launch(
    args: Mapping[str, Any], launcher: Launcher, place: Place, generation: int, cpus: Sequence[str | None] = ()
) -> dict[str, Any]:
    """Return launch.json: what agent.py and rank.py do on the node of PLACE. Each generation has a rendezvous of its own."""
    run_id = args["run_id"]
    job = Job(
        place=place,
        run_id=f"{run_id}.{generation}" if generation else run_id,
        directory=f"{RUNS}/{run_id}",
        max_restarts=args["max_restarts"],
        min_nodes=args["min_nodes"],
        cpus=tuple(cpus),
    )
    addresses = ",".join(place.addresses[node] for node in place.nodes)
    own = {"ALLREDUCE_NODE_ADDRESSES": addresses, "ALLREDUCE_NODE_NUMBER": str(place.nodes.index(place.node))}
    own |= launcher.variables(job)
    return {
        "run_id": run_id,
        "python": request.environment_python(args["environment"]),
        "engine": launcher.engine,
        "arguments": launcher.arguments(job),
        "min_nodes": job.min_nodes,
        "script": Path(args["script"]).name,
        "args": request.script_arguments(args["args"]),
        "variables": {**own, **{name: str(value) for name, value in args["variables"].items()}},
        "nproc_per_node": args["nproc_per_node"],
        "watch_interval": args["watch_interval"],
        **launcher.more(job),
    }


def few_cpus(node: str, ranks: Mapping[str, int]) -> Problem:
    """Return the problem that a node has fewer CPUs near its GPUs than ranks. RANKS: {CPU: how many ranks have only this one}."""
    return Problem("few_cpus", node, {"cpus": ",".join(ranks), "ranks": sum(ranks.values())})


def outage(args: Mapping[str, Any]) -> float:
    """Return the seconds for which a node that does not answer is tried again."""
    return float(args["lease"] / 2)


def with_warnings(result: dict[str, Any], warnings: list[str]) -> dict[str, Any]:
    return {**result, "warnings": [*result.get("warnings", ()), *warnings]} if warnings else result


class RemoteUnit:
    """The unit of one node. WORK: script and files; ARCHIVE: them with the first launch.json, as the node gets them."""

    def __init__(
        self, node: Node, args: Mapping, place: Place, launcher: Launcher, work: Sequence[Path], task_vars: Mapping
    ):
        self._node, self._args, self._place, self._launcher, self._vars = node, args, place, launcher, task_vars
        measured = (task_vars.get("ansible_facts") or {}).get("gpu_node")
        bindings = rank_binding(measured) if measured else []
        cpus = [one["cpus"] for one in bindings]
        # Only one rank for each GPU is bound.
        shared = crowded(bindings) if args["nproc_per_node"] in ("auto", str(len(bindings))) else {}
        self.warnings = [describe(few_cpus(place.node, shared))] if shared else []
        self._archive = request.archive(launch(args, launcher, place, 0, cpus), launcher.files, work)
        self._succeeded = False
        self.size = len(self._archive)
        self.interrupts = Interrupts()

    def look(self) -> dict:
        """Return the node's clock and what its environment has, before anything of the run is there: {now, versions}."""
        python = request.environment_python(self._args["environment"])
        return self._module("polled", wait=0, lease=self._args["lease"], python=python)

    def start(self, place: Place, generation: int) -> dict:
        self._place = place
        # A node that starts again has all but the new rendezvous.
        again = generation > 0
        data = request.archive(launch(self._args, self._launcher, place, generation)) if again else self._archive
        # An interrupt in the middle could leave the node starting after we had stopped it.
        with self.interrupts.deferred():
            more = {"again": True} if again else {}
            return self._module("started", archive=self._node.upload(data), **self._start_arguments(), **more)

    def poll(self, wait: float) -> dict:
        rendezvous = {"rendezvous": self._place.rendezvous} if self._launcher.listens else {}
        self.interrupts.check()
        seen = self._persist("polled", wait=wait, lease=self._args["lease"], **rendezvous)
        self._succeeded = seen["service"]["state"] == "succeeded"
        return seen

    def stacks(self) -> tuple[dict[str, list[str]], Sequence[str]]:
        """Return the frames of each rank that could be asked, by rank as text, and what is wrong with network file systems.

        A node that does not answer is tried at the next look.
        """
        try:
            seen = self._module("polled", wait=0, lease=self._args["lease"], stacks=True)
        except (Unreachable, UnitError):
            return {}, ()
        return {str(rank["rank"]): rank["stack"] for rank in seen["ranks"]}, seen["mount_faults"]

    def stop(self) -> dict:
        remove = self._succeeded and not self._args["keep"]
        return self._persist("stopped", tail_lines=self._args["tail_lines"], remove=remove)

    def sleep(self, seconds: float) -> None:
        self.interrupts.check()
        time.sleep(seconds)

    def rehearse(self) -> dict:
        """Return the commands that would run, and as warnings the obstacles to them, in check mode."""
        warnings = self._module("started", **self._start_arguments()).get("warnings")
        place, script = self._place, self._args["script"]
        text = f"Would run {script} on {', '.join(place.nodes)} with the rendezvous {place.rendezvous}."
        told = [f"{place.node}: {warning}" for warning in (warnings if isinstance(warnings, list) else ())]
        return {"changed": True, "msg": text, "warnings": told + self.warnings}

    def _start_arguments(self) -> dict:
        args, place = self._args, self._place
        python = request.environment_python(args["environment"])
        programs = [str(Path(python).parent / name) for name in self._launcher.programs]
        return {
            "user": args["user"],
            "python": python,
            "address": place.address,
            "rendezvous": place.rendezvous,
            "nodes": len(place.nodes),
            "lease": args["lease"],
            **({"programs": programs} if programs else {}),
        }

    def _persist(self, state: str, **arguments: object) -> dict:
        """Try again for half a lease when the node does not answer: a short outage costs no training."""
        until = time.monotonic() + outage(self._args)
        while True:
            try:
                return self._module(state, **arguments)
            except Unreachable:
                if time.monotonic() > until or self.interrupts.received is not None:
                    raise
                time.sleep(2)

    def _module(self, state: str, **arguments: object) -> dict:
        common = {"run_id": self._args["run_id"], "state": state, "directory": RUNS}
        answer = self._node.execute({**common, **arguments}, self._vars)
        try:
            return harmless(answer) if state == "started" else read_answer(answer)
        except DocumentError as error:
            raise UnitError(
                f"{self._place.node} answered what module training_unit does not: {error}"[:LONGEST]
            ) from error
