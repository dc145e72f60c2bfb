# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each further node of a cluster costs compared with the first: time, what comes from outside the cluster, solving and compiling."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.lab import hosts, traffic, wheels
from tests.lab.demo import MACHINE
from tests.lab.progress import say

from .growth import LAB, Case, mega, up, watch
from .measure import inventory_of, playbook

LEAST = 4  # nodes: the third and the fourth must be as cheap as the second
# The Python environment and what it needs; the driver is compiled on each node, and is not what is measured here.
TAGS = "base,cluster_ssh,python_env,frameworks,horovod"
CASE = Case("the demo's environment with Horovod", MACHINE, options=("--tags", TAGS), horovod=True)
# Tasks that are to run once for all nodes, by the ends of their names before what they name.
ONCE = {"solves": "Solve environment ", "compiles": "Compile Horovod "}


@dataclass(frozen=True)
class Added:
    """What one node cost: seconds of the whole run, what it downloaded, how often something was solved or compiled on any node."""

    name: str
    wall: float
    downloaded: traffic.Traffic
    counts: Mapping[str, int]

    @property
    def from_outside(self) -> int:
        """Bytes that came from outside the cluster; the lab's caches are not part of it."""
        return self.downloaded.packets[traffic.CACHE] + self.downloaded.packets[traffic.OUTSIDE]

    @property
    def from_cluster(self) -> int:
        """Bytes that came from other nodes."""
        return self.downloaded.packets[traffic.NEIGHBOURS]


def measure(nodes: int) -> bool:
    """Print the table; whether every further node got what the first had, and nothing was solved or compiled again."""
    wheels.ensure("horovod")
    shutil.rmtree(inventory_of(LAB), ignore_errors=True)  # with the lock of an earlier plan
    try:
        with tempfile.TemporaryDirectory() as sockets:  # of hosts that are gone, whose addresses these have
            added = [_add(number, sockets) for number in range(1, max(nodes, LEAST) + 1)]
    finally:
        hosts.down(LAB)
    print(table(CASE.what, added), end="\n\n")
    return not list(shortcomings(added))


def _add(number: int, sockets: str) -> Added:
    """Bring the environment to one node more."""
    name = f"{LAB}-{number}"
    inventory = up(CASE, number)
    say(f"site on {name}, {'the first' if number == 1 else 'one node more'}")
    seen = watch(inventory, name)
    cost = playbook("site", inventory, *CASE.options, "-e", f"ansible_control_path_dir={sockets}")
    return Added(name, cost.wall, seen.traffic(), counted(cost.actions))


def counted(actions: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the number of times that something was solved and compiled, of a run's remote executions."""
    return {what: sum(start in row["task"] for row in actions) for what, start in ONCE.items()}


def shortcomings(added: Sequence[Added]) -> Iterable[str]:
    """Yield the costs of a further node that only the first may have."""
    for node in added[1:]:
        yield from (f"{node.name}: {one}" for one in traffic.unshared(node.downloaded))
        yield from (f"{node.name}: {count} {what}" for what, count in node.counts.items() if count)


def table(what: str, added: Sequence[Added]) -> str:
    """Return the table of what each node cost, in multiples of the first."""
    first, found = added[0], list(shortcomings(added))
    lines = [
        f"What each further node costs beside the first ({what}); a run is over all nodes",
        "",
        f"  {'node':12}{'seconds':>9}{'× first':>9}{'from outside':>16}{'× first':>9}{'from nodes':>16}{'solves':>8}{'compiles':>10}",
    ]
    for node in added:
        lines.append(
            f"  {node.name:12}{node.wall:9.0f}{node.wall / first.wall:9.2f}"
            f"{mega(node.from_outside):>16}{node.from_outside / first.from_outside:9.2f}{mega(node.from_cluster):>16}"
            f"{node.counts['solves']:8d}{node.counts['compiles']:10d}"
        )
    return "\n".join([*lines, *[f"  NOT as it must be: {one}" for one in found]])
