# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Training runs and how throughput grows with the cluster."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone

from ..documents.benchmark import LEAST, MOST
from ..documents.training import Metrics, ScheduledJob, TrainingFailure, TrainingResult
from ..launch.stall import describe_stall
from .machines import share_a_machine
from .model import Failure, Run, Scaling, Size

TAIL_LINES = 60
TAIL_WIDTH = 1000
LOSSES = 120  # of a curve


def runs(results: Iterable[TrainingResult]) -> tuple[Run, ...]:
    """Return the training runs, newest first."""
    ordered = sorted(results, key=lambda result: (_moment(result), result.run_id), reverse=True)
    seen: set[tuple[str, int]] = set()
    found = []
    for result in ordered:
        size = (result.script, len(result.nodes))
        found.append(_run(result, counts=size not in seen))
        seen.add(size)
    return tuple(found)


def is_on_processors(run: Run) -> bool:
    """Return True if the script said that it computed on processors."""
    return run.device.lower() == "cpu"


def scaling(found: Iterable[Run], machines: Mapping[str, str] | None = None) -> tuple[Scaling, ...]:
    """Compare, per script, the newest successful run of every size with the smallest.

    machines: {node: what two nodes of one machine have in common}
    """
    newest: dict[str, dict[int, Run]] = {}
    for run in found:
        if run.status == "succeeded" and run.samples_per_second and run.processes > 0:
            newest.setdefault(run.script, {}).setdefault(len(run.nodes), run)
    ordered = {script: [sizes[size] for size in sorted(sizes)] for script, sizes in sorted(newest.items())}
    return tuple(
        Scaling(script, tuple(_sizes(series)), _caveat(series, machines or {})) for script, series in ordered.items()
    )


def _caveat(series: list[Run], machines: Mapping[str, str]) -> str:
    """Return the limits of what the figures of a script say, empty where they say all that they seem to."""
    figure = "efficiency" if len(series) > 1 else "throughput"
    processors = any(is_on_processors(run) for run in series)
    if any(share_a_machine(run.nodes, machines) for run in series):
        what, of = (
            ("the processors of one machine", "GPUs or a network") if processors else ("one machine", "a network")
        )
        return f"The nodes share {what}: this {figure} says nothing about {of}."
    return f"It ran on processors: this {figure} says nothing about GPUs." if processors else ""


def _sizes(ordered: list[Run]) -> Iterator[Size]:
    base = ordered[0]
    for run in ordered:
        speedup = (run.samples_per_second or 0) / (base.samples_per_second or 1)
        efficiency = speedup * base.processes / run.processes
        yield Size(run.run_id, len(run.nodes), run.processes, run.samples_per_second or 0, speedup, efficiency)


def _run(result: TrainingResult, counts: bool) -> Run:
    metrics = Metrics.read(result.metrics)
    # What was measured partly with the nodes that were lost is the throughput of no size.
    throughput, epochs = None if result.lost else metrics.samples_per_second, _finite(metrics.epochs)
    return Run(
        run_id=result.run_id,
        script=result.script,
        nodes=result.nodes,
        processes=result.world_size or 0,
        started=result.started,
        finished=result.finished,
        seconds=_seconds(result),
        status="succeeded" if result.status == "succeeded" else "failed",
        failure=_failure(result.failure),
        samples_per_second=throughput if throughput and LEAST <= throughput <= MOST else None,
        loss_first=_finite(metrics.loss_first),
        loss_last=_finite(metrics.loss_last),
        epochs=None if epochs is None else int(epochs),
        device=metrics.device,
        backend=metrics.backend,
        remarks=(
            *([describe_job(result.job)] if result.job else []),
            *_remarks(metrics),
            *(f"{one.node} was lost: {one.reason}" for one in result.lost),
            *([describe_stall(result.stall)] if result.stall else []),
        ),
        counts=counts,
        losses=thinned(metrics.losses),
    )


def describe_job(job: ScheduledJob) -> str:
    """Return the phrase that names Slurm's job."""
    times = "once" if job.restarts == 1 else f"{job.restarts} times"
    return f"Slurm's job {job.id}" + (f", which began again {times}" if job.restarts else "")


def thinned(values: tuple[float, ...], most: int = LOSSES) -> tuple[float, ...]:
    """Return at most the given number of means of equal spans, in the order of the values."""
    count = min(most, len(values))
    edges = [len(values) * place // count for place in range(count + 1)] if count else []
    return tuple(sum(values[one:two]) / (two - one) for one, two in zip(edges, edges[1:], strict=False))


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _remarks(metrics: Metrics) -> Iterator[str]:
    first, last = metrics.loss_first, metrics.loss_last
    if any(loss is not None and not math.isfinite(loss) for loss in (first, last)):
        yield "the loss is not a finite number: the training diverged"
    elif first is not None and last is not None and last >= first:
        yield "the loss did not fall"


def _failure(failure: TrainingFailure | None) -> Failure | None:
    if failure is None:
        return None
    lines = [line.rstrip("\n") for line in failure.tail[-TAIL_LINES:]]
    shown = tuple(line if len(line) <= TAIL_WIDTH else line[:TAIL_WIDTH] + "…" for line in lines)
    return Failure(failure.node, failure.rank, failure.exit_code, failure.reason, shown)


def instant(text: str) -> datetime | None:
    """Parse an ISO 8601 time; one without a zone is UTC. None: it is not a time."""
    try:
        # Python 3.10 knows no "Z".
        parsed = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=timezone.utc)


def _moment(result: TrainingResult) -> float:
    when = instant(result.started) or instant(result.finished)
    return when.timestamp() if when else 0.0


def _seconds(result: TrainingResult) -> float | None:
    started, finished = instant(result.started), instant(result.finished)
    return (finished - started).total_seconds() if started and finished else None
