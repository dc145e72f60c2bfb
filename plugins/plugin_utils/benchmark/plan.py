# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan the runs of a benchmark of a given number of nodes, and what each measures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..documents.benchmark import Reference
from ..documents.parsing import DocumentError, parse
from ..launch.request import check_play, select_nodes
from ..problems.problem import Problem, ProblemError

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
    reference: Sequence[object] = (),
) -> dict[str, Any]:
    """Return {nodes, runs}; raise ProblemError where nodes are asked for that cannot all run at the same time.

    together: whether there are runs of several nodes; reference: value of benchmark_reference. A run is {name, groups, nproc_per_node,
    args}; the nodes of a group run together, and the groups of a run at the same time.
    """
    check_reference(reference)
    selected = select_nodes(available, nodes, VARIABLE)
    check_play(selected, playing, int(forks), VARIABLE)
    runs = [
        _run("node", [[node] for node in selected], nproc_per_node, []),
        _run("gpu", [selected[:1]], "1", ["--at-most", "training"]),
        *(_run("nodes", [selected[:size]], nproc_per_node, TOGETHER) for size in sizes(len(selected)) if together),
    ]
    return {"nodes": selected, "runs": runs}


def check_reference(given: Sequence[object]) -> None:
    """Refuse figures that nothing can be compared with; raise ProblemError. Names are checked as the role's options."""
    for number, entry in enumerate(given):
        place = f"benchmark_reference[{number}]"
        try:
            one = parse(Reference, entry, place)
        except DocumentError as error:
            raise _wrong(error.path, error.value, error.expected) from error
        if one.gpus < 1:
            raise _wrong(f"{place}.gpus", one.gpus, "a number of at least 1")
        if one.images_per_second <= 0:
            raise _wrong(f"{place}.images_per_second", one.images_per_second, "a number above 0")


def _wrong(place: str, value: object, needs: str) -> ProblemError:
    return ProblemError(Problem("wrong_reference", place, {"value": value, "needs": needs}))


def sizes(nodes: int) -> list[int]:
    """Return the numbers of nodes that run together, in addition to one alone: powers of two, and all.

    >>> sizes(1), sizes(2), sizes(6)
    ([], [2], [2, 4, 6])
    """
    powers = [1 << exponent for exponent in range(1, nodes.bit_length()) if 1 << exponent < nodes]
    return [*powers, nodes] if nodes > 1 else []


def _run(name: str, groups: list[list[str]], nproc_per_node: str, args: list[str]) -> dict[str, Any]:
    return {"name": name, "groups": groups, "nproc_per_node": nproc_per_node, "args": args}
