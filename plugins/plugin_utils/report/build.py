# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the report from what verification and training left behind: a pure function of their documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from ...module_utils.machine.topology import natural_key
from ..benchmark.words import checks as benchmark_checks
from ..documents.benchmark import Benchmark
from ..documents.check import CATEGORIES, CLUSTER, STATUSES, Check, verdict
from ..documents.training import TrainingResult
from ..documents.verification import NodeVerification, Verification
from ..documents.watching import Watching
from ..problems.phrases import clean, enumeration, plural, quantity
from . import benchmark, courses, health, machine, network, training
from .comparisons import counts
from .description import describe
from .model import Courses, Node, Report, Run, Scaling, Verdict


def build(
    verification: Verification,
    results: Iterable[TrainingResult],
    title: str,
    measured: Benchmark | None = None,
    watched: Callable[[str], Iterable[Watching]] = lambda run: (),
) -> Report:
    """Build the report of one verification (verify.json), any number of training runs (result.json), perhaps a benchmark.

    watched: returns what the GPUs of the nodes did during a run, by its run_id
    """
    found = verification.nodes
    proven = list(benchmark_checks(measured)) if measured else []
    nodes = tuple(_node(name, found[name], proven) for name in sorted(found, key=natural_key))
    # Of nodes that were not verified, too.
    others = [check for check in proven if check.node not in found]
    cluster = _checks([*verification.cluster_checks, *others], CLUSTER)
    runs = training.runs(results)
    machines = {name: node.gpu_node_state.boot_id for name, node in found.items() if node.gpu_node_state.boot_id}
    scaling = training.scaling(runs, machines)
    return Report(
        title=clean(title),
        finished=_finished(verification, runs),
        verdict=_verdict(nodes, cluster, runs, scaling, sum(not node.gpu_compute for node in found.values())),
        nodes=nodes,
        cluster_checks=cluster,
        network=network.build(verification.network, found),
        runs=runs,
        scaling=scaling,
        benchmark=benchmark.build(measured, machines),
        courses=_courses(runs, watched),
        inventory=verification.inventory,
        collection=verification.collection,
    )


def _courses(runs: Iterable[Run], watched: Callable[[str], Iterable[Watching]]) -> Courses | None:
    """Return those of the newest run that has any; of a run on processors they would say that nothing happened."""
    on_gpus = (run for run in runs if not training.is_on_processors(run))
    found = (courses.build(run.run_id, run.script, watched(run.run_id)) for run in on_gpus)
    return next(filter(None, found), None)


def _finished(verification: Verification, runs: Iterable[Run]) -> str:
    """Return the latest moment in the inputs, as it was written: the report says nothing about when it was rendered."""
    times = [verification.finished, *(run.finished for run in runs)]
    known = [(moment, text) for moment, text in ((training.instant(text), text) for text in times) if moment]
    return max(known)[1] if known else times[0]


def _node(name: str, node: NodeVerification, proven: Iterable[Check]) -> Node:
    """proven: checks of the benchmark, of all nodes."""
    checks = [*(replace(check, node=name) for check in node.checks), *(one for one in proven if one.node == name)]
    return Node(
        name=name,
        address=node.address,
        description=describe(node),
        checks=_checks(checks, name),
        machine=machine.build(node.gpu_node, health.faults(node.gpu_health)),
        health=health.build(node.gpu_node, node.gpu_health),
        gpu_compute=node.gpu_compute,
    )


def _checks(checks: Iterable[Check], node: str) -> tuple[Check, ...]:
    """Checks by category; within one, failed first, otherwise in the order they were made."""
    return tuple(
        sorted(
            (_check(check, node) for check in checks),
            key=lambda check: (_rank(CATEGORIES, check.category), check.category, STATUSES.index(check.status)),
        )
    )


def _check(check: Check, node: str) -> Check:
    found = replace(check, node=check.node or node, category=check.category or "other")
    if check.status in STATUSES:
        return found
    # What cannot be interpreted is not success.
    reason = f"{check.reason} (status was {check.status or 'absent'})".strip()
    return replace(found, status="unknown", reason=reason)


def _rank(order: tuple[str, ...], value: str) -> int:
    return order.index(value) if value in order else len(order)


def _verdict(
    nodes: tuple[Node, ...],
    cluster: tuple[Check, ...],
    runs: tuple[Run, ...],
    scaling: tuple[Scaling, ...],
    without_compute: int,
) -> Verdict:
    """without_compute: the number of nodes whose GPUs were said not to compute."""
    checks = [check for node in nodes for check in node.checks] + list(cluster)
    counted = Counter(check.status for check in checks)
    counts = {status: counted[status] for status in STATUSES}
    current = [run for run in runs if run.counts]
    statuses = ["failed" if run.status == "failed" else "passed" for run in current] or ["unknown"]
    statuses += [*(check.status for check in checks), *(() if counts["passed"] else ("unknown",))]
    training_sentences = _training_sentences(current, scaling)
    sentences = (
        _checks_sentence(nodes, counts),
        *_compute_sentence(without_compute),
        *_plan_sentence(nodes),
        *training_sentences,
    )
    return Verdict(verdict(statuses), counts, sentences)


def _checks_sentence(nodes: tuple[Node, ...], counts: Mapping[str, int]) -> str:
    if not any(counts.values()):
        return f"{plural(len(nodes), 'node')}, no checks."
    order = ("passed", "failed", "unknown", "skipped")
    shown = [f"{counts[status]:,} {status}" for status in order if counts[status] or status in ("passed", "failed")]
    return f"{plural(len(nodes), 'node')}, {plural(sum(counts.values()), 'check')}: {enumeration(shown)}."


def _compute_sentence(without: int) -> Iterator[str]:
    if without:
        yield f"Whether GPUs compute was not checked on {plural(without, 'node')} (verify_gpu_compute: false)."


def _plan_sentence(nodes: tuple[Node, ...]) -> Iterator[str]:
    found = [counts(node.description.items) for node in nodes]
    different = [known for known, _open in found if known]
    unmeasured = [open_ones for _known, open_ones in found if open_ones]
    if different:
        yield f"{plural(sum(different), 'difference')} between plan and installation on {plural(len(different), 'node')}."
    elif any(node.description.items for node in nodes):
        yield "What was measured is installed as planned."
    if unmeasured:
        yield f"{plural(sum(unmeasured), 'part')} of the plan could not be measured on {plural(len(unmeasured), 'node')}."


def _training_sentences(current: list[Run], scaling: tuple[Scaling, ...]) -> Iterator[str]:
    if not current:
        yield "No training run was found."
    for series in scaling:
        sizes = enumeration(f"{size.nodes:,}" for size in series.sizes)
        nodes = "node" if sizes == "1" else "nodes"
        speeds = enumeration(quantity(size.samples_per_second) for size in series.sizes)
        text = f"{series.script} trained on {sizes} {nodes}: {speeds} samples/s"
        if len(series.sizes) > 1:
            text += f", scaling efficiency {series.sizes[-1].efficiency:.0%}"
        yield f"{text}. {series.caveat}".rstrip()
    for run in current:
        if run.status == "succeeded" and run.samples_per_second is None:
            yield f"{run.script} trained on {plural(len(run.nodes), 'node')}, without reporting its throughput."
    failed = [run for run in current if run.status == "failed"]
    for run in failed[:3]:
        yield f"{run.script} failed on {plural(len(run.nodes), 'node')} (run {run.run_id})."
    if len(failed) > 3:
        yield f"{plural(len(failed) - 3, 'more run')} failed."
