# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Turn the findings of module gpu_health into checks: the GPUs' health and the consistency of their driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ...module_utils.health.check_table import BY_CODE
from ...module_utils.machine.sysfs import FOR_GUESTS
from .check import LEFT_OUT, PLAY, Check, check, compared, joined, skipped


def is_wanted(stack: Mapping, gpu_node: Mapping) -> bool:
    """Return True if there is anything to judge: a GPU, or GPUs that the plan counts."""
    return bool(gpu_node.get("gpus") or planned_gpus(stack))


def planned_gpus(stack: Mapping) -> int:
    return sum(int(gpu.get("count", 1)) for gpu in stack.get("gpus") or [])


def own_gpus(gpu_node: Mapping) -> int:
    """Return the number of GPUs that are not set aside for guests."""
    drivers = [gpu.get("kernel_driver") or "" for gpu in gpu_node.get("gpus") or []]
    return sum(not driver.startswith(FOR_GUESTS) for driver in drivers)


def checks(stack: Mapping, gpu_node: Mapping, health: Mapping | None) -> Iterator[Check]:
    """Yield one check for each thing that was judged, over all GPUs; health: what module gpu_health returned, if it ran."""
    if health is None:
        wanted = is_wanted(stack, gpu_node)
        yield (
            compared("gpu_health", "health", "ok", None, None, "module gpu_health did not run", PLAY)
            if wanted
            else skipped("gpu_health", "health", "ok", "no GPU on this node")
        )
        return
    for entry in health["judged"]:
        findings = [found for found in health["findings"] if found["check"] == entry["check"]]
        yield judged(entry, findings)
    for code in health.get("skipped_checks", []):
        yield skipped(code, BY_CODE[code].category, "", LEFT_OUT)


def judged(entry: Mapping, findings: list[Mapping]) -> Check:
    name, category = entry["check"], entry["category"]
    if not findings:
        return compared(name, category, entry["expected"], entry["measured"], True)
    known = [found for found in findings if found["severity"] != "unknown"]
    expected = ", ".join(dict.fromkeys(str(found["expected"]) for found in known or findings))
    reasons = (f"{found['severity'].replace('_', ' ')}: {found['cause']}" for found in findings)
    status, measured = ("failed", in_words(known)) if known else ("unknown", in_words(findings))
    return check(
        name, category, expected, measured, status, joined(reasons), joined(found["action"] for found in findings)
    )


def in_words(findings: Iterable[Mapping]) -> str:
    """Return the measured values, each with the GPUs of which it is true."""
    texts: dict[str, list[str]] = {}
    for found in findings:
        measured = "not known" if found["measured"] is None else str(found["measured"])
        texts.setdefault(measured, []).extend([found["gpu"]] if found["gpu"] else [])
    return "; ".join(text + (f" ({', '.join(gpus)})" if gpus else "") for text, gpus in texts.items())
