# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare declared GPU settings with those of the GPUs, now and at the next boot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ....module_utils.settings.declaration import parse
from ....module_utils.settings.describe import describe
from ....module_utils.settings.plan import make_plan
from ...documents.comparison import Comparison, Remedy, Status, compared

COMPONENT, UNIT = "gpu_settings", "allreduce-gpu-settings"
# What fact gpu_node tells of a GPU; clocks, only module gpu_settings asks for.
SETTINGS = ("ecc", "mig_mode", "persistence_mode", "compute_mode", "power_limit_watts")
_LIMITS = dict.fromkeys(("current", "default", "min", "max"))
_MODE = dict.fromkeys(("current", "pending"))


def compare_settings(
    declaration: list[Any], gpus: Iterable[Mapping[str, Any]], unit: Mapping[str, Any]
) -> list[Comparison]:
    """Return a comparison for each declared setting of each GPU, and for the unit that applies them at boot; unit: its state."""
    entries = [
        {**one, "settings": {name: value for name, value in one["settings"].items() if name in SETTINGS}}
        for one in parse(declaration)
    ]
    readings = [_reading(gpu) for gpu in gpus if gpu.get("index") is not None]
    if not readings:
        found = [compared(COMPONENT, "settings", "as declared", None, None, Remedy.MEASURE, "setting")]
    else:
        found = [*_settings(make_plan(entries, readings))]
    enabled = unit.get("enabled")
    words = "enabled" if enabled else "disabled"
    return [*found, compared(COMPONENT, UNIT, "enabled", words, enabled, Remedy.APPLY, "service")]


def compare_unwanted(unit: Mapping[str, Any]) -> list[Comparison]:
    """Return the differences of a node of which nothing is declared: that something is applied at its next boot."""
    if not unit.get("enabled"):
        return []
    return [Comparison(COMPONENT, UNIT, "absent", "enabled", Status.UNWANTED, Remedy.APPLY, "service")]


def _settings(plan: Mapping[str, Any]) -> Iterator[Comparison]:
    for problem in plan["problems"]:
        reason = f"refused: {describe(problem).rstrip('.')}"
        yield compared(
            COMPONENT, problem["subject"] or "settings", "as declared", reason, False, Remedy.DECLARE, "setting"
        )
    refused = {(one["detail"].get("index"), one["detail"].get("setting")) for one in plan["problems"]}
    for gpu in plan["gpus"]:
        index, changes = gpu["reading"]["index"], {one["setting"]: one for one in gpu["changes"]}
        for setting in SETTINGS:
            if setting in gpu["wanted"] and (index, setting) not in refused:
                yield _setting(f"{setting} of GPU {index}", gpu["wanted"][setting], changes.get(setting))


def _setting(subject: str, wanted: Any, change: Mapping[str, Any] | None) -> Comparison:
    desired = _text(change["after"] if change else wanted)
    seen = _text(change["before"]) if change else desired
    return compared(COMPONENT, subject, desired, seen, change is None, Remedy.APPLY, "setting")


def _text(value: Any) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def _reading(gpu: Mapping[str, Any]) -> dict[str, Any]:
    """Return a GPU of fact gpu_node as module gpu_settings reads it."""
    known = {key: gpu.get(key) for key in ("index", "uuid", "name", "pci_bus_id", "persistence_mode", "compute_mode")}
    return {
        **known,
        "name": gpu.get("name") or "unknown",
        "ecc": {**_MODE, **(gpu.get("ecc") or {})},
        "mig_mode": {**_MODE, **(gpu.get("mig") or {})},
        "power_limit_watts": {**_LIMITS, **(gpu.get("power_limit_watts") or {})},
    }
