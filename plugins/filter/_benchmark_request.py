# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Adapter of plugin_utils.benchmark.plan."""

from __future__ import annotations

DOCUMENTATION = r"""
name: _benchmark_request
short_description: Plan the runs of a benchmark
author:
  - The allreduce.gpu authors (@allreduce)
description:
  - Selects the nodes, and says which of them run what together; one sentence where they cannot.
options:
  _input:
    description: Inventory names of all nodes.
    type: list
    elements: str
    required: true
  nodes:
    description: A number (the first of them), a list of names, or either as text; empty for all.
    type: raw
  playing:
    description: Names of the nodes that take part in the play.
    type: list
    elements: str
    required: true
  forks:
    description: How many nodes Ansible serves at the same time.
    type: int
    required: true
  nproc_per_node:
    description: Ranks per node, a number or V(auto).
    type: str
    default: auto
  together:
    description: Whether there are runs of several nodes.
    type: bool
    default: true
  reference:
    description: Figures to compare the training with, as role P(allreduce.gpu.benchmark#role) takes them.
    type: list
    elements: dict
    default: []
"""

EXAMPLES = r"""
__plan: "{{ groups['gpu_nodes'] | allreduce.gpu._benchmark_request(nodes='', playing=ansible_play_hosts, forks=ansible_forks) }}"
"""

RETURN = r"""
_value:
  description:
    - C(nodes), and C(runs), each with C(name), C(groups) of nodes that run together, C(nproc_per_node) and C(args);
      C(refusal), V(null) or one sentence, with which the others are empty.
  type: dict
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from collections.abc import Sequence
from typing import Any

from ..plugin_utils.benchmark.plan import plan
from ..plugin_utils.problems.problem import ProblemError
from ..plugin_utils.subjects.sentences import describe_all


def benchmark_request(
    available: Sequence[str],
    *,
    playing: Sequence[str],
    forks: int,
    nodes: object = None,
    nproc_per_node: str = "auto",
    together: bool = True,
    reference: Sequence[object] = (),
) -> dict[str, Any]:
    """Return the plan with refusal null, or an empty one with the sentence that says why."""
    try:
        found = plan(
            available,
            nodes=nodes,
            playing=playing,
            forks=forks,
            nproc_per_node=str(nproc_per_node),
            together=together,
            reference=reference,
        )
        return {**found, "refusal": None}
    except ProblemError as error:
        return {"nodes": [], "runs": [], "refusal": describe_all(error.problems)}


class FilterModule:
    """Filter allreduce.gpu._benchmark_request."""

    def filters(self) -> dict:
        return {"_benchmark_request": benchmark_request}
