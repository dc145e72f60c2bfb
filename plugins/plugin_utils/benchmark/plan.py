# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan the runs of a benchmark of so many nodes, and what each measures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..launch.request import check_play, select_nodes

VARIABLE = "benchmark_nodes"
TOGETHER = ["--at-most", "collectives", "training"]


def plan(
    available: Sequence[str],
    *,
    nodes: object,
    playing: Sequence[str],
    forks: int,
    nproc_per_node: str,
    together: bool = True,
) -> dict[str, Any]:
    """Return {nodes, runs}; raise ProblemError where nodes are asked for that cannot all run at the same time.

    together: whether there are runs of several nodes. A run is {name, groups, nproc_per_node, args}; the nodes of a group run
    together, and the groups of a run at the same time.
    """
    selected = select_nodes(available, nodes, VARIABLE)
    check_play(selected, playing, int(forks), VARIABLE)
    runs = [
        _run("node", [[node] for node in selected], nproc_per_node, []),
        _run("gpu", [selected[:1]], "1", ["--at-most", "training"]),
        *(_run("nodes", [selected[:size]], nproc_per_node, TOGETHER) for size in sizes(len(selected)) if together),
    ]
    return {"nodes": selected, "runs": runs}


def sizes(nodes: int) -> list[int]:
    """Return how many nodes run together, beside one: powers of two, and all.

    >>> sizes(1), sizes(2), sizes(6)
    ([], [2], [2, 4, 6])
    """
    powers = [1 << exponent for exponent in range(1, nodes.bit_length()) if 1 << exponent < nodes]
    return [*powers, nodes] if nodes > 1 else []


def _run(name: str, groups: list[list[str]], nproc_per_node: str, args: list[str]) -> dict[str, Any]:
    return {"name": name, "groups": groups, "nproc_per_node": nproc_per_node, "args": args}
