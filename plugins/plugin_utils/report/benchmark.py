# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The benchmark as the report shows it: figures of GPUs and nodes next to their like, training, and how it scales."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from ..benchmark.judge import Comparison, compare
from ..benchmark.limits import limit
from ..benchmark.scaling import Curve, curves
from ..benchmark.words import beside, model, title
from ..checks.environment import version_parts
from ..documents.benchmark import Benchmark as Measured
from ..documents.benchmark import Document, Measurement, Reference, Run
from ..problems.phrases import enumeration, plural, quantity
from .machines import share_a_machine

QUANTITIES = {
    "utilization_percent": "Utilisation, %", "memory_used_mib": "Memory, MiB", "power_watts": "Power, W",
    "temperature_celsius": "Temperature, °C", "clock_sm_mhz": "SM clock, MHz", "clock_memory_mhz": "Memory clock, MHz",
}  # fmt: skip
PHASES = ("compute", "communication", "data")


@dataclass(frozen=True)
class FigureRow:
    """One figure of all that are alike."""

    title: str
    of: str  # 8 GPUs, NVIDIA H100
    unit: str
    median: float
    least: float
    most: float
    slow: tuple[str, ...]  # who is slower than the others, with the figure
    code: str  # why they are not compared: too_few, no_gpu; empty where they are
    limit: float | None = None  # by the data sheet, in the same unit

    @property
    def share(self) -> str:
        """Return the median as a part of the limit; empty where there is none."""
        return f"{100 * self.median / self.limit:.0f} % of {quantity(self.limit)}" if self.limit else ""


@dataclass(frozen=True)
class AbsentRow:
    """A figure that could not be measured."""

    title: str
    nodes: tuple[str, ...]
    code: str
    reason: str


@dataclass(frozen=True)
class TrainingRow:
    """Training of one model in one way on a number of ranks. times_plain: against the plain loop of the same run, None for that loop."""

    nodes: tuple[str, ...]
    ranks: int
    model: str
    arm: str
    images_per_second: float
    spread: str
    how: str
    phases: tuple[tuple[str, float | None], ...]  # milliseconds of a step
    bottleneck: str
    times_plain: float | None
    reference: Reference | None  # the figure to compare with

    @property
    def share(self) -> str:
        """Return images/s as a part of the reference; empty where there is none."""
        return beside(self.images_per_second, self.reference)


@dataclass(frozen=True)
class SampleRow:
    """Answers of NVML during a part, over all GPUs that ran alone on their node: the median of their medians."""

    during: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Benchmark:
    """The section; quantities are the headings of the samples."""

    run_id: str
    finished: str
    sentences: tuple[str, ...]
    figures: tuple[FigureRow, ...]
    absent: tuple[AbsentRow, ...]
    training: tuple[TrainingRow, ...]
    curves: tuple[Curve, ...]
    quantities: tuple[str, ...]
    samples: tuple[SampleRow, ...]
    caveat: str = ""  # what the curves do not say, where nodes are not machines of their own


def build(found: Measured | None, machines: Mapping[str, str] | None = None) -> Benchmark | None:
    """Build the section of a benchmark; None where there was none.

    machines: {node: what two nodes of one machine have in common}
    """
    if found is None:
        return None
    compared = compare(found)
    names, samples = _samples(found)
    return Benchmark(
        run_id=found.run_id,
        finished=found.finished,
        sentences=tuple(_sentences(found)),
        figures=tuple(_figure(one) for one in compared if one.name != "training"),
        absent=_absent(found),
        training=tuple(_training(found)),
        curves=curves(found),
        quantities=names,
        samples=samples,
        caveat=_caveat(found, machines or {}),
    )


def _caveat(found: Measured, machines: Mapping[str, str]) -> str:
    shared = any(share_a_machine(run.nodes, machines) for run, _document in found.documents("nodes"))
    return "The nodes share one machine: this efficiency says nothing about a network." if shared else ""


def _sentences(found: Measured) -> Iterator[str]:
    for run in found.runs:
        if run.status != "succeeded":
            yield f"The run on {enumeration(run.nodes)} failed: {run.reason}."
    versions = {_versions(run.document) for run in found.runs if run.document}
    if versions:
        yield f"Measured with {enumeration(sorted(versions))}."
    if any(one.device == "cpu" for run in found.runs if run.document for one in run.document.ranks):
        yield "Figures of processors prove that the program works; they say nothing about a GPU."


def _versions(document: Document) -> str:
    shown = {"torch": "PyTorch", "cuda": "CUDA", "cudnn": "cuDNN", "nccl": "NCCL"}
    known = {name: version for name, version in document.versions.items() if version}
    if re.fullmatch("[0-9]{1,9}", known.get("cudnn", "")):
        known["cudnn"] = version_parts("cudnn", int(known["cudnn"])) or ""
    return ", ".join(f"{word} {known[name]}" for name, word in shown.items() if known.get(name))


def _figure(found: Comparison) -> FigureRow:
    values = [member.value for member in found.members]
    count = plural(len(values), "node" if found.kind == "node" else "GPU" if found.device == "cuda" else "rank")
    slow = tuple(
        f"{one.node}{'' if one.gpu is None else f' GPU {one.gpu}'}: {quantity(one.value)}" for one in found.slow
    )
    return FigureRow(
        title(found.name, dict(found.case)), f"{count}, {found.model}", found.unit, median(values), min(values), max(values),
        slow, found.code, limit(found.name, dict(found.case), found.model) if found.device == "cuda" else None,
    )  # fmt: skip


def _absent(found: Measured) -> tuple[AbsentRow, ...]:
    nodes: dict[tuple[str, str, str], dict[str, None]] = {}
    for run, document in found.documents("node"):
        for one in document.measurements:
            if one.value is None:
                nodes.setdefault((title(one.name, one.case), one.code, one.reason), {})[run.nodes[0]] = None
    return tuple(AbsentRow(name, tuple(names), code, reason) for (name, code, reason), names in nodes.items())


def _training(found: Measured) -> Iterator[TrainingRow]:
    for name in ("gpu", "node", "nodes"):
        for run, document in found.documents(name):
            measured = [one for one in document.measurements if one.name == "training" and one.value]
            plain = {one.case.get("model"): one.value for one in measured if one.case.get("arm") == "plain"}
            for one in measured:
                base = plain.get(one.case.get("model")) if one.case.get("arm") != "plain" else None
                yield _row(run, document, one, base, found.known(one, document.world_size))


def _row(
    run: Run, document: Document, found: Measurement, plain: float | None, reference: Reference | None
) -> TrainingRow:
    value = found.value or 0.0
    phases = _phases(found.detail.get("step_seconds"))
    known = [(seconds, name) for name, seconds in phases if seconds is not None and seconds > 0]
    return TrainingRow(
        nodes=run.nodes,
        ranks=document.world_size,
        model=model(found.case.get("model")),
        arm=str(found.case.get("arm", "")),
        images_per_second=value,
        spread=f"{quantity(found.least)} to {quantity(found.most)}" if found.least != found.most else "",
        how=_how(found.device, found.detail),
        phases=phases,
        bottleneck=max(known)[1] if known else "",
        times_plain=value / plain if plain else None,
        reference=reference,
    )


def _phases(seconds: Any) -> tuple[tuple[str, float | None], ...]:
    given = seconds if isinstance(seconds, dict) else {}
    found = ((name, given.get(name)) for name in PHASES)
    return tuple((name, 1000 * value if isinstance(value, (int, float)) else None) for name, value in found)


def _how(device: str, detail: dict[str, Any]) -> str:
    """Return the properties of a way of training: device, precision, batch, and further features in use."""
    words = [device, str(detail.get("precision", ""))]
    words += [f"batch {detail['batch_per_rank']}" if "batch_per_rank" in detail else ""]
    words += ["channels-last" if detail.get("memory_format") == "channels_last" else ""]
    words += ["compiled" if detail.get("compiled") else "", "CUDA graphs" if detail.get("cuda_graphs") else ""]
    return ", ".join(word for word in words if word)


def _samples(found: Measured) -> tuple[tuple[str, ...], tuple[SampleRow, ...]]:
    """Return the headings of what any GPU answered, and a row for each part."""
    values: dict[str, dict[str, list[float]]] = {}
    for _run, document in found.documents("node"):
        for sample in document.samples:
            for name, figure in sample.figures.items():
                values.setdefault(sample.during, {}).setdefault(name, []).append(figure.median)
    seen = [name for name in QUANTITIES if any(name in part for part in values.values())]
    rows = (
        SampleRow(during, tuple(quantity(median(part[name])) if name in part else "" for name in seen))
        for during, part in values.items()
    )
    return tuple(QUANTITIES[name] for name in seen), tuple(rows)
