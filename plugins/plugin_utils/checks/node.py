# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All checks of one node, and those of the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..documents.comparison import Comparison
from ..drift.record import observe
from ..preflight.contact import LONGEST, contact_problems
from ..problems.phrases import clean
from ..problems.sentence import Sentence
from ..subjects.sentences import told as problem_told
from . import bandwidth, coherence, drift, environment, network
from . import health as gpu_health
from .check import PLAY, Check, check, compared, joined, on_node, skipped, told

WRONG_NUMBERS = (
    "wrong numbers",
    "verify the nodes in halves (--limit) until the one is left that computes wrongly, and take it out of use",
)
SEE = "look up in docs/training.md why a run fails"
LOST = ("the node could not be reached or measured", PLAY)


def node_checks(
    comparisons: Iterable[Comparison],
    stack: Mapping,
    state: Mapping,
    gpu_node: Mapping,
    node: str = "",
    probe: Mapping | None = None,
    health: Mapping | None = None,
    gpu_compute: bool = True,
    driver: bool = True,
) -> list[Check]:
    """Return the checks of a node.

    comparisons: of plan and node, see drift.reconcile; stack, state, gpu_node: the facts gpu_stack, gpu_node_state and
    gpu_node; probe: what module node_probe returned; health: what module gpu_health returned. None when one did not run
    (what depends on it is then unknown). gpu_compute: whether the node's GPUs are said to compute; driver: whether the node
    gets the driver of the plan.
    """
    probe = probe or {}
    return on_node(node, [
        *drift.checks(comparisons, observe(state).has_run),
        *coherence.checks(driver and bool(stack.get("driver")), state, gpu_node, probe),
        *gpu_health.checks(stack, gpu_node, health),
        *environment.checks(stack, gpu_node, probe, gpu_compute),
        *network.checks(state, probe),
    ])  # fmt: skip


def lost_node_checks(node: str, reached: Mapping, root: Mapping) -> list[Check]:
    """Return the one check of a node that does not answer: the play went on without it.

    reached, root: what the first contact registered, see preflight/contact.py; a node that was lost later has answered then.
    """
    contact = [problem_told(one) for one in contact_problems({node: reached}, {node: root})]
    why = (" ".join(clean(str(reached.get("msg") or "")).split())[:LONGEST], contact[0].fix) if contact else LOST
    return on_node(node, [check("reachable", "health", "yes", "no", "failed", *why)])


def unfit_node_checks(node: str, wrong: Sentence) -> list[Check]:
    """Return the one check of a node whose answers cannot be: nothing else that it says is looked at."""
    why = (joined([wrong.what, wrong.why]), wrong.fix)
    return on_node(node, [check("answers", "health", "what the modules return", "something else", "failed", *why)])


def collective_checks(result: Mapping, without: Iterable[str] = (), gpu_nodes: Sequence[Mapping] = ()) -> list[Check]:
    """Return the checks of the cluster.

    result: what action torchrun returned for allreduce_check.py; without: nodes planned for CUDA whose GPUs are said not to
    compute, for whose sake all ranks ran on processors; gpu_nodes: the facts gpu_node of the nodes that took part
    """
    if result.get("skipped"):
        return on_node(
            "cluster",
            [
                skipped(
                    "collectives",
                    "collectives",
                    "right sums",
                    "no collectives were run (switched off, in check mode, or without PyTorch in the plan)",
                )
            ],
        )
    training = result.get("training") or {}
    metrics = training.get("metrics") or {}
    if training.get("status") != "succeeded" and not metrics.get("checks"):
        return on_node("cluster", [failed_run(result, training), *between_gpus(without)])
    where = f"on {metrics['world_size']} ranks ({metrics['backend']})"
    found = [
        compared(
            entry["name"], "collectives", f"{entry['expected']} {where}", f"{entry['measured']} {where}",
            bool(entry["passed"]), *WRONG_NUMBERS,
        )
        for entry in metrics["checks"]
    ]  # fmt: skip
    return on_node("cluster", found + bandwidth.checks(metrics, gpu_nodes) + between_gpus(without))


def failed_run(result: Mapping, training: Mapping) -> Check:
    """Return the check of a run that was refused, or ended before it compared anything, with the last line of its output."""
    if result.get("problems"):
        why = told(Sentence(**one) for one in result["problems"])
        return compared("collectives", "collectives", "a run on all nodes", "failed", False, *why)
    failure = training.get("failure") or {}
    reason = failure.get("reason") or str(result.get("msg") or "the run did not start").splitlines()[0]
    tail = [line for line in failure.get("tail") or [] if line.strip()]
    if tail and tail[-1].strip().rstrip(".") not in reason:
        reason = f"{reason} Last line: {tail[-1].strip()}"
    return compared("collectives", "collectives", "a run on all nodes", "failed", False, reason.rstrip("."), SEE)


def between_gpus(without: Iterable[str]) -> list[Check]:
    """Say that collectives between GPUs were not tried, and for which nodes' sake."""
    names = ", ".join(without)
    if not names:
        return []
    reason = f"{environment.NO_GPU_COMPUTE}: {names}; all ranks used their processors"
    return [skipped("collectives_gpu", "collectives", "right sums between GPUs (nccl)", reason)]
