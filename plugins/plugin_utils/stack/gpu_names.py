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
# Letters after the number of a board tell its forms apart in the names of vGPUs: 'A100D', 'H100XM', 'V100DX'.
FORM = re.compile(r"^([A-Z]+\d+)[A-Z]+$")
# So do vGPUs: 'GRID M60-1Q', 'NVIDIA A100-1-5CME', 'A40-48Q'.
VGPU = re.compile(r"^(?:NVIDIA )?(?:GRID )?(.+?)-(?:\d-)?\d+[ABCQ](?:ME)?(?:NOME)?$")
# What nvidia-smi -L and lspci write around a name: 'GPU 0: NVIDIA A40 (UUID: GPU-...)', 'NVIDIA Corporation GA102GL [A40] (rev a1)'.
AROUND = re.compile(r"^GPU \d+: | \(UUID: [^)]*\)$|^NVIDIA Corporation | \(rev [0-9a-f]+\)$")
# How people write: 'A100 80G', 'H100 PCI-E', 'RTX4090', '3090Ti', 'H100SXM', 'RTX 4090 Mobile'.
SPELLINGS = (
    (re.compile(r"\bpci-e\b"), "pcie"),
    (re.compile(r"\b(\d+)g\b"), r"\1gb"),
    (re.compile(r"\b(rtx|gtx|tesla|quadro)(\d)"), r"\1 \2"),
    (re.compile(r"(\d)(ti|super|sxm|pcie)"), r"\1 \2"),
)
# A laptop's GPU is called Mobile or Max-Q in the PCI ID database, Laptop GPU by NVML.
LAPTOP = {"laptop", "mobile"}


def words(name: str) -> frozenset[str]:
    """Return the words of a name that tell models apart."""
    text = str(name).lower()
    for found, instead in SPELLINGS:
        text = found.sub(instead, text)
    parts = set(re.split(r"[\s_()/-]+", text)) - NOISE - {""}
    return frozenset("laptop" if one in LAPTOP else one for one in parts)


def _is_form(more: frozenset[str]) -> bool:
    """Return True if words only tell the forms of one model apart: memory, board, cooling."""
    return all(re.fullmatch(r"\d+gb|sxm\d|pcie|nvl", one) for one in more)


def _fits(wanted: frozenset[str], have: frozenset[str]) -> bool:
    """Return True if a longer name has all these words; SXM without a number is every SXM."""
    return all(one in have or (one == "sxm" and any(word.startswith("sxm") for word in have)) for one in wanted)


def find_gpu(tables: Tables, value: object) -> GpuRow | None:
    """Return the row of a GPU given as text or as an entry of gpu_node.gpus; None when nothing fits.

    A measured GPU goes by its PCI id before its name: the id is the same before and after there is a driver.
    """
    if not isinstance(value, Mapping):
        return _by_text(tables, AROUND.sub("", str(value).strip()))
    found = (
        _by_pci_id(tables, pci_id(value.get("pci_device_id")))
        or _by_name(tables, MIG.sub("", str(value.get("name") or "")))
        or _by_database(tables, str(value.get("pci_name") or ""))
        or _by_vgpu_name(tables, str(value.get("name") or ""))
        or _by_capability(tables, str(value.get("compute_capability") or ""))
    )
    return _as_vgpu(found, value) if found and is_vgpu(tables, value) else found


def is_vgpu(tables: Tables, gpu: Mapping[str, object]) -> bool:
    """Return True if a measured GPU is one that a hypervisor's vGPU software made."""
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
    return found or _by_vgpu_name(tables, name) or _by_database(tables, name)


def _by_vgpu_name(tables: Tables, name: str) -> GpuRow | None:
    found = VGPU.match(name)
    row = _by_name(tables, found[1]) or _by_name(tables, FORM.sub(r"\1", found[1])) if found else None
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
    forms = [row for row in rows if _is_form(words(row["model"]) - wanted) and wanted < words(row["model"])]
    if forms:
        return _merge(name, forms)
    devices = [device for device in find_devices(tables) if wanted == words(device.name)]
    found = {made["compute_capability"]: made for device in devices if (made := device_row(tables, device))}
    if len(found) == 1:
        return next(iter(found.values()))
    merged = _merge(name, [row for row in rows if _fits(wanted, words(row["model"]))])
    return merged or _by_part_of_a_name(tables, wanted)


def _by_part_of_a_name(tables: Tables, wanted: frozenset[str]) -> GpuRow | None:
    """Return the device with the shortest name that has these words, if all that have them are of one generation.

    One word has to be a model's: with a letter and a number, or a number of four digits.
    """
    if not any(re.search(r"[a-z]\d|\d{4}", one) for one in wanted):
        return None
    devices = sorted(
        (device for device in find_devices(tables) if _fits(wanted, words(device.name))),
        key=lambda device: (len(words(device.name)), device.name),
    )
    found = [made for device in devices if (made := device_row(tables, device))]
    return found[0] if len({row["compute_capability"] for row in found}) == 1 else None


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
    """Return the row by a host's own copy of the PCI ID database, which may be newer than the tables."""
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
