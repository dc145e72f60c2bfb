# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The health of a node's GPUs as a table: what module gpu_health found, beside what gpu_facts measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...module_utils.machine.topology import gpu_label
from .machine import Fault, measured_gpus
from .text import clean, hostlist, mapping, mappings, quantity, texts

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
    """One GPU; empty texts are what nobody knows or what the GPU does not have."""

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


def build(gpu_node: Mapping[str, Any], judged: Mapping[str, Any]) -> Health:
    """gpu_node beside the result of module gpu_health, which is empty where it did not run."""
    findings, counters = mappings(judged.get("findings")), mapping(judged.get("counters"))
    gpus = measured_gpus(gpu_node)
    names = {gpu_label(gpu) for gpu in gpus}
    return Health(
        verdict=clean(judged.get("verdict")) or NOT_JUDGED,
        findings=tuple(sentence(found) for found in findings if clean(found.get("gpu")) not in names),
        gpus=tuple(_gpu(gpu, judged, findings, mapping(counters.get(gpu_label(gpu)))) for gpu in gpus),
    )


def faults(judged: Mapping[str, Any]) -> dict[str, Fault]:
    """Return {GPU: its worst fault}; what is unknown is none."""
    found: dict[str, Fault] = {}
    for severity in _SEVERITIES[:3]:
        for finding in mappings(judged.get("findings")):
            if finding.get("gpu") and finding.get("severity") == severity:
                words = {key: clean(finding.get(key)) for key in ("measured", "expected")}
                check = clean(finding.get("check"))
                short = _SHORT.get(check, _name(finding))
                found.setdefault(clean(finding["gpu"]), Fault(check, short.format(**words)))
    return found


def sentence(finding: Mapping[str, Any]) -> str:
    measured = "not known" if finding.get("measured") is None else clean(finding["measured"])
    expected, action = clean(finding.get("expected")), clean(finding.get("action"))
    return f"{_name(finding)}: {measured}, expected: {expected}. {action[:1].upper()}{action[1:]}."


def _name(finding: Mapping[str, Any]) -> str:
    return clean(finding.get("check")).replace("_", " ")


def _gpu(
    gpu: Mapping[str, Any],
    judged: Mapping[str, Any],
    findings: list[Mapping[str, Any]],
    counters: Mapping[str, Any],
) -> GpuHealth:
    name, pcie, power = gpu_label(gpu), mapping(gpu.get("pcie")), mapping(gpu.get("power_limit_watts"))
    own = [found for found in findings if clean(found.get("gpu")) == name]
    worst = next((one for one in _SEVERITIES if any(found.get("severity") == one for found in own)), "ok")
    links = mappings(gpu.get("nvlinks"))
    active = len([link for link in links if link.get("active")])
    return GpuHealth(
        name=name,
        verdict=worst if judged else NOT_JUDGED,
        findings=tuple(sentence(found) for found in own),
        pcie=_of(pcie, "generation", "gen ") + _of(pcie, "width", ", x" if pcie.get("generation") else "x"),
        nvlinks=f"{active} of {len(links)} active" if links else "",
        memory="; ".join(_memory(mapping(gpu.get("ecc")), counters)),
        clocks=", ".join(reason.replace("_", " ") for reason in texts(counters.get("clock_reasons"))),
        persistence=_on(gpu.get("persistence_mode")),
        modes="; ".join(_modes(gpu)),
        power=_watts(power.get("current"), power.get("default")),
    )


def _of(pcie: Mapping[str, Any], key: str, prefix: str) -> str:
    value, most = pcie.get(key), pcie.get(f"max_{key}")
    if not value:
        return ""
    return f"{prefix}{clean(value)}" + (f" of {clean(most)}" if most and most != value else "")


def _memory(ecc: Mapping[str, Any], counters: Mapping[str, Any]) -> list[str]:
    rows, errors = mapping(counters.get("remapped_rows")), counters.get("uncorrected_errors")
    found = [] if errors is None else [f"{clean(errors)} uncorrected"]
    if rows:
        remapped = sum(int(rows.get(kind) or 0) for kind in ("correctable", "uncorrectable"))
        found += [f"{remapped} rows remapped"]
        found += [f"remapping {word}" for word in ("pending", "failed") if rows.get(word)]
    if counters.get("retired_pages_pending"):
        found.append("page retirement pending")
    return found or (["no ECC"] if counters and ecc.get("current") is None else [])


def _modes(gpu: Mapping[str, Any]) -> list[str]:
    found = []
    for mode in ("ecc", "mig"):
        values = mapping(gpu.get(mode))
        if values.get("current") is not None:
            waits = (
                "" if values.get("pending") in (None, values["current"]) else f", {_on(values['pending'])} after reset"
            )
            found.append(f"{mode.upper()} {_on(values['current'])}{waits}")
    return found


def _on(value: Any) -> str:
    return "" if value is None else "on" if value else "off"


def _watts(current: Any, default: Any) -> str:
    usual = f", {quantity(default)} W by default" if default and default != current else ""
    return f"{quantity(current)} W{usual}" if current else ""
