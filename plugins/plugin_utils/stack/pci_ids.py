# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs that no row of gpus.yml describes: what the PCI ID database calls them, and what their chip's generation tells."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from .rows import GpuRow
from .tables import Tables


class Device(NamedTuple):
    """A device of the PCI ID database: its chip, its name, and its vGPUs {subsystem id: name}."""

    chip: str
    name: str
    vgpus: Mapping[str, str]


def pci_id(value: object) -> str | None:
    """Return the device id, as the tables write it, of 0x2235, 2235, 10de:2235 or 0x223510DE (device before vendor, as
    NVML writes it); None for anything else."""
    digits = re.sub(r"[^0-9a-fx]", "", str(value or "").lower()).replace("0x", "").replace("x", "")
    if len(digits) == 8:
        digits = digits[:4] if digits.endswith("10de") else digits[4:]
    return digits.upper() if len(digits) == 4 else None


@cache
def _devices(tables: Tables) -> dict[str, Device]:
    return {
        number: Device(row["chip"], name, row.get("vgpus", {}).get(number, {}))
        for row in tables.rows("pci_ids")
        for number, name in row["devices"].items()
    }


def find_device(tables: Tables, number: str) -> Device | None:
    """Return the device with this id."""
    return _devices(tables).get(number)


def find_devices(tables: Tables) -> list[Device]:
    """Return every device."""
    return list(_devices(tables).values())


def parse_device(text: str) -> Device | None:
    """Return the device of an entry of the database, such as 'GA102GL [A40]'; None where it names no chip."""
    found = re.match(r"([A-Z]{2}[0-9A-Z]{3}[A-Z]*)\b[^\[]*(?:\[(.+)\])?$", text.strip())
    return Device(found[1], found[2] or found[1], {}) if found else None


def device_row(tables: Tables, device: Device) -> GpuRow | None:
    """Return the row of a device by the generation of its chip; None for a chip of no known generation."""
    for row in tables.rows("architectures"):
        if device.chip.startswith(tuple(row["chips"])):
            found: GpuRow = {
                "model": device.name,
                "architecture": row["architecture"],
                "compute_capability": row["compute_capability"],
                "forward_compat": None,
                "min_driver": None,
                "min_cuda": row["min_cuda"],
                "kernel_modules": row["kernel_modules"],
                "pci_ids": [],
                "chip": device.chip,
            }
            return {**found, "max_driver_branch": row["max_driver_branch"]} if "max_driver_branch" in row else found
    return None
