# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The health of a node's GPUs as a table: what module gpu_health found, next to what gpu_facts measured."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..documents.gpu_node import Gpu, GpuNode, Mode, PcieLink
from ..documents.health import Counters, Finding, Judgement
from ..problems.phrases import hostlist, quantity
from .machine import Fault, measured_gpus

NOT_JUDGED = "not_judged"
# A fault in as few words as a box of the picture has room for; others go by the name of their check.
_SHORT = {
    "gpu_answers": "does not answer",
    "pcie_width": "PCIe {measured} of {expected}",
    "pcie_generation": "PCIe gen {measured} of {expected}",
    "nvlinks": "NVLinks down",
    "ecc_errors": "{measured} ECC errors",
    "row_remapping": "row remapping",
    "persistence_mode": "no persistence",
    "throttling": "{measured}",
    "xid": "{measured}",
}
_SEVERITIES = ("failed", "reboot_required", "degraded", "unknown")


@dataclass(frozen=True)
class GpuHealth:
    """One GPU; empty texts are what is not known or what the GPU does not have."""

    name: str
    verdict: str  # ok, one of _SEVERITIES, or NOT_JUDGED
    findings: tuple[str, ...]
    pcie: str
    nvlinks: str
    memory: str
    clocks: str
    persistence: str
    modes: str
    power: str


@dataclass(frozen=True)
class Health:
    """A node's GPUs. ``findings`` are those that are not about one GPU."""

    verdict: str
    findings: tuple[str, ...]
    gpus: tuple[GpuHealth, ...]
    notes: tuple[str, ...] = ()  # what is worth telling and no fault of the node

    @property
    def rows(self) -> list[tuple[str, GpuHealth]]:
        """Equal GPUs in one row, with their names; those that are not well first."""
        groups: dict[GpuHealth, list[str]] = {}
        for gpu in self.gpus:
            groups.setdefault(replace(gpu, name="", findings=()), []).append(gpu.name)
        rows = [(hostlist(names), gpu) for gpu, names in groups.items()]
        return sorted(rows, key=lambda row: _rank(row[1].verdict))


def _rank(verdict: str) -> int:
    return _SEVERITIES.index(verdict) if verdict in _SEVERITIES else len(_SEVERITIES)


def build(gpu_node: GpuNode, judged: Judgement | None) -> Health:
    """Put gpu_node next to the result of module gpu_health, which is None where it did not run."""
    found = judged or Judgement()
    gpus = measured_gpus(gpu_node)
    names = {gpu.label for gpu in gpus}
    return Health(
        verdict=found.verdict or NOT_JUDGED,
        findings=tuple(sentence(finding) for finding in found.findings if finding.gpu not in names),
        gpus=tuple(_gpu(gpu, judged, found.counters.get(gpu.label)) for gpu in gpus),
        notes=tuple(_note(note) for note in found.notes),
    )


def faults(judged: Judgement | None) -> dict[str, Fault]:
    """Return {GPU: its worst fault}; an unknown result is not a fault."""
    found: dict[str, Fault] = {}
    for severity in _SEVERITIES[:3]:
        for finding in judged.findings if judged else ():
            if finding.gpu and finding.severity == severity:
                found.setdefault(finding.gpu, Fault(finding.check, _short(finding)))
    return found


def _short(finding: Finding) -> str:
    if finding.check not in _SHORT:
        return _name(finding)
    return _SHORT[finding.check].format(measured=finding.measured or "", expected=finding.expected)


def sentence(finding: Finding) -> str:
    """Return the finding, the expectation, and what to do, in words."""
    measured = "not known" if finding.measured is None else finding.measured
    action = f"{finding.action[:1].upper()}{finding.action[1:]}"
    return f"{_name(finding)}: {measured}, expected: {finding.expected}. {action}."


def _note(note: Finding) -> str:
    """Return the event, and what it asks of whom."""
    of = f" on {note.gpu}" if note.gpu else ""
    return f"{_name(note)}{of}: {note.measured or 'not known'}. {note.action[:1].upper()}{note.action[1:]}."


def _name(finding: Finding) -> str:
    return finding.check.replace("_", " ")


def _gpu(gpu: Gpu, judged: Judgement | None, counters: Counters | None) -> GpuHealth:
    own = [finding for finding in judged.findings if finding.gpu == gpu.label] if judged else []
    worst = next((one for one in _SEVERITIES if any(finding.severity == one for finding in own)), "ok")
    active = sum(link.active for link in gpu.nvlinks)
    reasons = (counters.clock_reasons if counters else None) or ()
    return GpuHealth(
        name=gpu.label,
        verdict=worst if judged else NOT_JUDGED,
        findings=tuple(sentence(finding) for finding in own),
        pcie=_pcie(gpu.pcie),
        nvlinks=f"{active} of {len(gpu.nvlinks)} active" if gpu.nvlinks else "",
        memory="; ".join(_memory(gpu.ecc, counters)),
        clocks=", ".join(reason.replace("_", " ") for reason in reasons),
        persistence=_on(gpu.persistence_mode),
        modes="; ".join(_modes(gpu)),
        power=_watts(gpu.power_limit_watts.current, gpu.power_limit_watts.default),
    )


def _pcie(link: PcieLink) -> str:
    generation = _of(link.generation, link.max_generation, "gen ")
    return generation + _of(link.width, link.max_width, ", x" if generation else "x")


def _of(value: int | None, most: int | None, prefix: str) -> str:
    if not value:
        return ""
    return f"{prefix}{value}" + (f" of {most}" if most and most != value else "")


def _memory(ecc: Mode, counters: Counters | None) -> list[str]:
    if counters is None:
        return []
    rows, errors = counters.remapped_rows, counters.uncorrected_errors
    found = [] if errors is None else [f"{errors} uncorrected"]
    if rows:
        found += [f"{(rows.correctable or 0) + (rows.uncorrectable or 0)} rows remapped"]
        found += ["remapping pending"] if rows.pending else []
        found += ["remapping failed"] if rows.failed else []
    if counters.retired_pages_pending:
        found.append("page retirement pending")
    return found or (["no ECC"] if ecc.current is None else [])


def _modes(gpu: Gpu) -> list[str]:
    found = []
    for name, mode in (("ECC", gpu.ecc), ("MIG", gpu.mig)):
        if mode.current is not None:
            waits = "" if mode.pending in (None, mode.current) else f", {_on(mode.pending)} after reset"
            found.append(f"{name} {_on(mode.current)}{waits}")
    return found


def _on(value: bool | None) -> str:
    return "" if value is None else "on" if value else "off"


def _watts(current: float | None, default: float | None) -> str:
    usual = f", {quantity(default)} W by default" if default and default != current else ""
    return f"{quantity(current)} W{usual}" if current else ""
