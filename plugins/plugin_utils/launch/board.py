# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The board on which the workers of one run, one process per node, tell each other how their node stands.

A directory on the controller with one JSON file per node, written by that node's worker only:
  phase             starting (its unit is not running yet) | waiting (no rank has started) | running | ended
  until             the worker writes again before this time, or is lost (seconds since the epoch)
  written           {rank: when something of it was seen last, by the controller's clock}
  rendezvous_error  why the node cannot connect to the rendezvous, or None
  outcome           None until the node has ended, see outcome.py
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..documents.files import write_json
from .node.run import CLOCKS_APART, unlike

# Seconds. A worker writes every few seconds unless it says so; this is for a node that answers slowly.
PATIENCE = 60.0
_NODES = ".nodes"


def has_posted(directory: Path, node: str) -> bool:
    """Return True if the board of the run in DIRECTORY has the state of a node."""
    return os.path.exists(directory / _NODES / f"{node}.json")  # noqa: PTH110 - Path.exists raises where it may not look


class Board:
    """The board of a run as one NODE's worker sees it."""

    def __init__(self, directory: Path, node: str, nodes: Sequence[str], clock: Callable[[], float] = time.time):
        self._directory, self._seen = directory / _NODES, directory / ".seen"
        self._node = node
        self._nodes = list(nodes)
        self._states = {node: self._directory / f"{node}.json" for node in nodes}
        self._clock = clock
        self._opened = clock()
        self._kept: dict[Path, tuple[tuple[int, int, int], dict]] = {}
        for place in (self._directory, self._seen):
            place.mkdir(parents=True, exist_ok=True)

    def post(
        self,
        phase: str,
        rendezvous_error: str | None = None,
        outcome: Mapping | None = None,
        patience: float = PATIENCE,
        written: Mapping[str, float] | None = None,
    ) -> None:
        """Publish the state of the own node, and how long it is valid."""
        state = {"phase": phase, "rendezvous_error": rendezvous_error, "outcome": outcome, "written": written or {}}
        write_json(self._directory / f"{self._node}.json", {**state, "until": self._clock() + patience}, durable=False)

    def tell(self, ahead: tuple[float, float], versions: Mapping[str, str]) -> None:
        """Publish by how many seconds, at least and at most, the own node's clock is ahead, and the versions of its environment."""
        write_json(self._seen / f"{self._node}.json", {"ahead": ahead, "versions": versions}, durable=False)

    def told(self, node: str) -> dict | None:
        """Return the message of a node's worker, as {ahead, versions}."""
        return self._read(self._seen / f"{node}.json")

    def tell_stacks(self, stacks: Mapping[str, Sequence[str]], mounts: Sequence[str] = ()) -> None:
        """Publish where the ranks of the own node are, and what is wrong with its network file systems."""
        told = {"at": self._clock(), "stacks": stacks, "mounts": list(mounts)}
        write_json(self._seen / f"{self._node}.stacks.json", told, durable=False)

    def stacks(self, since: float) -> dict[str, dict]:
        """Return {stacks, mounts} of each node that told them after a time."""
        told = {node: self._read(self._seen / f"{node}.stacks.json") for node in self._nodes}
        return {node: one for node, one in told.items() if one and one["at"] >= since}

    def tell_silence(self, text: str) -> None:
        """Publish which ranks are behind; an empty text once ranks write again."""
        write_json(self._seen / "silence.json", {"text": text}, durable=False)

    def silence(self) -> str:
        """Return the ranks that are behind, or an empty text."""
        return (self._read(self._seen / "silence.json") or {}).get("text", "")

    def awaited(self) -> list[str]:
        """Return the nodes that have told nothing and still may: they have neither ended nor been lost."""
        lost = self.lost()
        return [
            node
            for node, state in self.read().items()
            if not (state and state["outcome"]) and node not in lost and not self.told(node)
        ]

    def read(self) -> dict[str, dict | None]:
        """Return the state of every node; None for one whose worker has not written yet."""
        return {node: self._read(place) for node, place in self._states.items()}

    def _read(self, path: Path) -> dict | None:
        """Return the content of a file, which is replaced as a whole and read again only then."""
        try:
            status = path.stat()
            now = (status.st_ino, status.st_mtime_ns, status.st_size)
            if path not in self._kept or self._kept[path][0] != now:
                self._kept[path] = (now, json.loads(path.read_text(encoding="utf-8")))
            return self._kept[path][1]
        except FileNotFoundError:
            return None

    def outcomes(self) -> list[dict]:
        """Return the outcomes of the nodes that have ended, in the order of the nodes."""
        return [state["outcome"] for state in self.read().values() if state and state["outcome"]]

    def lost(self) -> dict[str, str]:
        """Return the nodes without an outcome whose workers are silent for too long, with the reason as a phrase."""
        phrases = {}
        for node, state in self.read().items():
            if state is None and self._clock() > self._opened + PATIENCE:
                phrases[node] = f"{node} never began its part of the run"
            elif state and not state["outcome"] and self._clock() > state["until"]:
                phrases[node] = f"{node} stopped answering while it was {state['phase']}"
        return phrases

    def failed(self) -> list[str]:
        """Return the nodes that have failed or are lost; empty while all is well."""
        return [*(outcome["node"] for outcome in self.outcomes() if outcome["status"] == "failed"), *self.lost()]

    def all_started(self, but: str | None = None) -> bool:
        """Return True if the unit of every node that is still there has been started, one of them aside."""
        failed = [*self.failed(), but]
        states = {node: state for node, state in self.read().items() if node not in failed}
        return all(state and state["phase"] != "starting" for state in states.values())


def explain_stall(
    states: Mapping[str, Mapping | None], first: str, rendezvous: str, seconds: int, engine: str = "torchrun"
) -> tuple[str, str]:
    """Return (node to look at, phrase): why no rank has started after SECONDS; without a RENDEZVOUS it was not looked for."""
    if not rendezvous:
        return first, f"{engine} has started no rank after {seconds} s"
    errors = {node: state["rendezvous_error"] for node, state in states.items() if state and state["rendezvous_error"]}
    if first in errors:
        return first, f"{first} does not listen on the rendezvous {rendezvous} after {seconds} s ({errors[first]})"
    if errors:
        names = ", ".join(f"{node} ({error})" for node, error in errors.items())
        return next(iter(errors)), (
            f"after {seconds} s the rendezvous {rendezvous} on {first} cannot be reached from {names}; let the nodes' "
            "firewalls accept traffic between their cluster addresses, or correct gpu_cluster_address"
        )
    return first, f"{engine} has started no rank after {seconds} s although all nodes reach the rendezvous {rendezvous}"


def explain_clock(board: Board, first: str, node: str) -> str | None:
    """Return the phrase why c10d would leave NODE out; None while its clock may be near enough to that of the FIRST."""
    reference, own = board.told(first), board.told(node)
    if not (reference and own):
        return None
    (least_first, most_first), (least, most) = reference["ahead"], own["ahead"]
    ahead, behind = least - most_first, least_first - most
    if max(ahead, behind) <= CLOCKS_APART:
        return None
    side = "ahead of" if ahead > behind else "behind"
    return (
        f"the clock of {node} is at least {int(max(ahead, behind))} s {side} that of {first}, and c10d would leave the node out; "
        "let a time server set the clocks of both"
    )


def explain_versions(board: Board, first: str, node: str) -> str | None:
    """Return the phrase why the environments of NODE and of the FIRST do not go together; None where they do."""
    reference, own = board.told(first), board.told(node)
    if not (reference and own):
        return None
    differing = unlike(reference["versions"], own["versions"])
    return (
        f"the environment of {node} has {differing} as on {first}; run playbook site.yml on both" if differing else None
    )
