# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A benchmark in words: names of figures, checks for the report, lines for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..documents.benchmark import Benchmark, Reference, Run
from ..documents.check import CLUSTER, Check
from ..problems.phrases import enumeration, plural, quantity
from .judge import MEMBERS, Comparison, Member, compare
from .scaling import Curve, curves

CATEGORY = "benchmark"
MODELS = {"resnet50": "ResNet-50", "vit_b_16": "ViT-B/16"}
NAMES = {
    "gemm": "matrix product", "memory_copy": "copy in memory", "host_to_device": "host to GPU", "device_to_host": "GPU to host",
    "peer_copy": "GPU to GPU", "all_reduce": "all-reduce", "all_gather": "all-gather", "training": "training",
}  # fmt: skip
NOT_COMPARED = {
    "too_few": "fewer than {least} {members} of the same kind were measured, so there is nothing to compare with",
    "no_gpu": "processors were measured, but only GPUs are compared",
}
RUNS = "see the output of the benchmark, and docs/training.md for why a run fails"
SLOW = "run verify, and compare clocks, temperature and PCIe links with those of its peers"
KINDS = {"gpu": ("benchmark_gpus", "GPUs"), "node": ("benchmark_node", "nodes")}


def title(name: str, case: Mapping[str, Any]) -> str:
    """Return the name of a measurement, in words.

    >>> title("gemm", {"precision": "bf16", "size": 8192}), title("all_reduce", {"bytes": 1048576, "ranks": 8})
    ('matrix product bf16', 'all-reduce 1 MiB')
    >>> title("training", {"model": "resnet50", "arm": "tuned"}), title("peer_copy", {"from": 0, "to": 1, "peer_access": False})
    ('training ResNet-50 tuned', 'GPU to GPU 0 to 1 without peer access')
    """
    words = [NAMES.get(name, name)]
    if name == "gemm":
        words.append(str(case.get("precision", "")))
    elif name == "training":
        words += [model(case.get("model")), str(case.get("arm", ""))]
    elif name == "peer_copy" and "from" in case:
        words.append(
            f"{case['from']} to {case.get('to')}" + ("" if case.get("peer_access") else " without peer access")
        )
    elif name in ("all_reduce", "all_gather"):
        words.append(binary(case.get("bytes")))
    return " ".join(word for word in words if word)


def model(name: object) -> str:
    """Return a model as people write it."""
    return MODELS.get(str(name), str(name))


def binary(size: object) -> str:
    """Return bytes as the largest binary unit that leaves a whole number.

    >>> binary(65536), binary(1 << 30), binary(None)
    ('64 KiB', '1 GiB', '')
    """
    if not isinstance(size, int):
        return ""
    for unit, bits in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size and size % (1 << bits) == 0:
            return f"{size >> bits} {unit}"
    return f"{size} bytes"


def checks(benchmark: Benchmark) -> Iterator[Check]:
    """Yield the checks of a benchmark: that its runs succeeded, and per node that neither it nor its GPUs are slower than their like."""
    failed = [run for run in benchmark.runs if run.status != "succeeded"]
    count = len(benchmark.runs)
    yield Check(
        name="benchmark_runs", node=CLUSTER, category=CATEGORY, expected=f"{count} of {count} runs",
        measured=f"{count - len(failed)} of {count} runs", status="failed" if failed else "passed",
        reason="; ".join(f"on {enumeration(run.nodes)}: {run.reason}" for run in failed), fix=RUNS if failed else "",
    )  # fmt: skip
    found = compare(benchmark)
    for node in dict.fromkeys(run.nodes[0] for run, _document in benchmark.documents("node")):
        for kind in KINDS:
            yield _node_check(node, kind, [one for one in found if one.kind == kind])


def _node_check(node: str, kind: str, comparisons: Iterable[Comparison]) -> Check:
    name, members = KINDS[kind]
    own = [one for one in comparisons if any(member.node == node for member in one.members)]
    judged = [one for one in own if one.among]
    expected = f"no slower than {members} of the same kind"
    if not judged:
        code = "no_gpu" if own and all(one.code == "no_gpu" for one in own) else "too_few"
        reason = NOT_COMPARED[code].format(least=MEMBERS, members=members)
        return Check(name, node, CATEGORY, expected, "", "skipped", reason)
    total = sum(member.node == node for one in judged for member in one.members)
    slow = [(one, member) for one in judged for member in one.slow if member.node == node]
    reasons = "; ".join(_difference(one, member) for one, member in slow)
    measured = f"{total - len(slow)} of {plural(total, 'figure')}"
    return Check(
        name, node, CATEGORY, expected, measured, "failed" if slow else "passed", reasons, SLOW if slow else ""
    )


def _difference(found: Comparison, member: Member) -> str:
    gpu = "" if member.gpu is None else f"GPU {member.gpu}, "
    middle = quantity(found.among.median if found.among else None)
    return f"{gpu}{title(found.name, dict(found.case))}: {quantity(member.value)} {found.unit}, median {middle}"


def summary(benchmark: Benchmark) -> dict[str, Any]:
    """Return lines to show, and a sentence that names the runs which failed, empty without any."""
    failed = [run for run in benchmark.runs if run.status != "succeeded"]
    slow = [one for one in checks(benchmark) if one.status == "failed" and one.node != CLUSTER]
    lines = [line for run in benchmark.runs for line in run_lines(run, benchmark)]
    lines += [_growth(curve) for curve in curves(benchmark) if len(curve.points) > 1]
    lines += [f"{check.node} is slower than its peers: {check.reason}." for check in slow]
    verdict = "; ".join(dict.fromkeys(f"{enumeration(run.nodes)}: {run.reason}" for run in failed))
    return {
        "lines": lines,
        "verdict": f"Runs of the benchmark failed on {verdict}." if verdict else "",
        "slow": len(slow),
    }


def beside(value: float, known: Reference | None) -> str:
    """Return a figure as a part of its reference; empty where there is none.

    >>> beside(1650, Reference("resnet50", 4, 1700, source="a paper")), beside(1650, None)
    ('97 % of 1,700 (a paper)', '')
    """
    if known is None:
        return ""
    source = f" ({known.source})" if known.source else ""
    return f"{100 * value / known.images_per_second:.0f} % of {quantity(known.images_per_second)}{source}"


def run_lines(run: Run, benchmark: Benchmark) -> Iterator[str]:
    """Yield one line for a run, and one for each figure of training."""
    where = enumeration(run.nodes)
    if run.document is None:
        yield f"{where}: failed, {run.reason}"
        return
    devices = {one.name for one in run.document.ranks}
    yield f"{where}: {plural(run.document.world_size, 'rank')} on {enumeration(sorted(devices))}"
    for one in run.document.measurements:
        if one.rank is None and one.name == "training":
            figure = f"{quantity(one.median)} {one.unit}" if one.value else f"not measured, {one.reason}"
            share = beside(one.value or 0.0, benchmark.known(one, run.document.world_size))
            yield f"  {title(one.name, one.case)}: {figure}" + (f", {share}" if share else "")


def _growth(curve: Curve) -> str:
    steps = ", ".join(f"{plural(one.ranks, 'rank')} {quantity(one.images_per_second)}" for one in curve.points)
    return f"{model(curve.model)} {curve.arm}, images/s: {steps}; scaling efficiency {curve.points[-1].efficiency:.0%}"
