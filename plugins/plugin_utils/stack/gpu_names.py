# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finding a GPU in the tables by whatever it is called: NVML's name, a short name, a PCI device id, a capability."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

from .pci_ids import Device, device_row, find_device, find_devices, parse_device, pci_id
from .rows import GpuRow
from .tables import Tables
from .versions import at_least

# Words that carry no model: 'NVIDIA GeForce RTX 3090' and 'RTX 3090' are one GPU.
NOISE = {"nvidia", "geforce", "tesla", "quadro", "graphics", "gpu", "generation"}
# A part of a GPU goes by the name of the whole and its profile: 'A100-SXM4-40GB MIG 1g.5gb'.
MIG = re.compile(r"\s+MIG\s+\S+$")
# So do vGPUs: 'GRID M60-1Q', 'NVIDIA A100-1-5CME', 'A40-48Q'.
VGPU = re.compile(r"^(?:NVIDIA )?(?:GRID )?(.+?)-(?:\d-)?\d+[ABCQ](?:ME)?(?:NOME)?$")


def words(name: str) -> frozenset[str]:
    """Return the words of a name that tell models apart."""
    return frozenset(re.split(r"[\s_()/-]+", str(name).lower())) - NOISE - {""}


def find_gpu(tables: Tables, value: object) -> GpuRow | None:
    """Return the row of a GPU given as text or as an entry of gpu_node.gpus; None when nothing fits.

    A measured GPU goes by its PCI id before its name: the id is the same before and after there is a driver.
    """
    if not isinstance(value, Mapping):
        return _by_text(tables, str(value).strip())
    found = (
        _by_pci_id(tables, pci_id(value.get("pci_device_id")))
        or _by_name(tables, MIG.sub("", str(value.get("name") or "")))
        or _by_database(tables, str(value.get("pci_name") or ""))
        or _by_vgpu_name(tables, str(value.get("name") or ""))
        or _by_capability(tables, str(value.get("compute_capability") or ""))
    )
    return _as_vgpu(found, value) if found and is_vgpu(tables, value) else found


def is_vgpu(tables: Tables, gpu: Mapping[str, object]) -> bool:
    """Return whether a measured GPU is one that a hypervisor's vGPU software made."""
    device = find_device(tables, pci_id(gpu.get("pci_device_id")) or "")
    subsystem = str(gpu.get("pci_subsystem_id") or "").rpartition(":")[2].upper()
    return bool(gpu.get("vgpu") or VGPU.match(str(gpu.get("name") or "")) or (device and subsystem in device.vgpus))


def _as_vgpu(row: GpuRow, gpu: Mapping[str, object]) -> GpuRow:
    name = str(gpu.get("name") or "")
    model = name.removeprefix("NVIDIA ") if VGPU.match(name) else f"{row['model']} (vGPU)"
    return {**row, "model": model, "vgpu": True}


def _by_text(tables: Tables, text: str) -> GpuRow | None:
    name = MIG.sub("", text)
    found = _by_name(tables, name) or _by_pci_id(tables, pci_id(name)) or _by_capability(tables, name)
    return found or _by_vgpu_name(tables, name)


def _by_vgpu_name(tables: Tables, name: str) -> GpuRow | None:
    found = VGPU.match(name)
    row = _by_name(tables, found[1]) if found else None
    return _as_vgpu(row, {"name": name}) if row else None


@cache
def _by_name(tables: Tables, name: str) -> GpuRow | None:
    """Return the row of that name, else a device of the PCI ID database, else whatever the words of the name fit."""
    wanted = words(name)
    if not wanted:
        return None
    rows = tables.rows("gpus")
    for row in rows:
        if wanted in [words(one) for one in (row["model"], *row.get("names", ()))]:
            return row
    devices = [device for device in find_devices(tables) if wanted == words(device.name)]
    found = {made["compute_capability"]: made for device in devices if (made := device_row(tables, device))}
    if len(found) == 1:
        return next(iter(found.values()))
    return _merge(name, [row for row in rows if wanted <= words(row["model"])])


def _by_pci_id(tables: Tables, number: str | None) -> GpuRow | None:
    row = next((row for row in tables.rows("gpus") if number in row["pci_ids"]), None)
    device = find_device(tables, number or "")
    return row or (_by_device(tables, device) if device else None)


def _by_device(tables: Tables, device: Device) -> GpuRow | None:
    """Return the row that has the device's name, else what its chip's generation tells."""
    wanted = words(device.name)
    named = (
        row for row in tables.rows("gpus") for one in (row["model"], *row.get("names", ())) if words(one) == wanted
    )
    return next(named, None) or device_row(tables, device)


def _by_database(tables: Tables, text: str) -> GpuRow | None:
    """Return what a host's own copy of the PCI ID database says, which may be newer than the tables."""
    device = parse_device(text)
    return _by_device(tables, device) if device else None


def _by_capability(tables: Tables, value: str) -> GpuRow | None:
    rows = [row for row in tables.rows("gpus") if row["compute_capability"] == value.strip()]
    return _merge(f"compute capability {value.strip()}", rows)


def _merge(name: str, rows: Sequence[GpuRow]) -> GpuRow | None:
    """One row that is right for whichever of these it is: the strictest value of every column."""
    if len(rows) < 2:
        return rows[0] if rows else None
    if len({row["compute_capability"] for row in rows}) > 1:
        return None
    floors = [row["min_driver"] for row in rows if row["min_driver"]]
    return {
        **rows[0],
        "model": name,
        "min_driver": max(floors, key=lambda one: [int(part) for part in one.split(".")]) if floors else None,
        "min_cuda": next(
            row["min_cuda"] for row in rows if all(at_least(row["min_cuda"], one["min_cuda"]) for one in rows)
        ),
        "forward_compat": all(row["forward_compat"] for row in rows),
        "kernel_modules": [
            flavour for flavour in rows[0]["kernel_modules"] if all(flavour in row["kernel_modules"] for row in rows)
        ],
        "ambiguous": [row["model"] for row in rows],
    }
