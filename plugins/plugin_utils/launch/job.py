# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node's part of a run, as every launcher is asked for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Place:
    """A node's place in a run. The first of NODES is the rendezvous."""

    node: str
    nodes: tuple[str, ...]
    addresses: Mapping[str, str]
    port: int
    others: frozenset[str] = frozenset()  # IPv4 addresses that the nodes have besides, as far as facts tell
    # For a launcher that is queued: the names of the nodes in Slurm, and how many GPUs each has.
    scheduled: tuple[str, ...] = ()
    gpus: int = 0

    @property
    def address(self) -> str:
        return self.addresses[self.node]

    @property
    def is_first(self) -> bool:
        return self.node == self.nodes[0]

    @property
    def rendezvous(self) -> str:
        host = self.addresses[self.nodes[0]]
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


@dataclass(frozen=True)
class Job:
    """The program of one node; ranks per node are measured there."""

    place: Place
    run_id: str
    directory: str  # the run's, on the node
    max_restarts: int = 0
    min_nodes: int = 1  # with fewer, the run has failed
    cpus: tuple[str | None, ...] = ()  # of each local rank, as rank_binding gives them where the node was measured


@dataclass(frozen=True)
class Launcher:
    """A program that starts ranks: what it is told on a node."""

    engine: str  # the program; its log on the node has this name
    arguments: Callable[[Job], list[str]]
    variables: Callable[[Job], dict[str, str]]
    more: Callable[[Job], dict[str, Any]] = lambda job: {}  # of launch.json
    files: tuple[str, ...] = (
        "agent.py",
        "rank.py",
        "sitecustomize.py",
        "watch.py",
    )  # of launch/node, next to the script's directory
    elastic: bool = False  # goes on without nodes that were lost, as long as there are min_nodes
    # Ranks start when a scheduler lets them; the first node, which asks it, begins after the others.
    queued: bool = False
    listens: bool = True  # on the rendezvous, before any rank has started
    programs: tuple[str, ...] = ()  # the node has one of these, if any are named; a bare name is one of the environment
