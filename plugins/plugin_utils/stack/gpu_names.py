# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finding a GPU in the tables by whatever it is called: NVML's name, a short name, a PCI device id, a capability."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

from .rows import GpuRow
from .tables import Tables
from .versions import at_least

# Words that carry no model: 'NVIDIA GeForce RTX 3090' and 'RTX 3090' are one GPU.
NOISE = {"nvidia", "geforce", "tesla", "quadro", "graphics", "gpu", "generation"}


def words(name: str) -> frozenset[str]:
    """Return the words of a name that tell models apart."""
    return frozenset(re.split(r"[\s_()/-]+", str(name).lower())) - NOISE - {""}


def find_gpu(tables: Tables, value: object) -> GpuRow | None:
    """Return the row of a GPU given as text or as an entry of gpu_node.gpus; None when nothing fits."""
    if not isinstance(value, Mapping):
        return _by_name(tables, str(value).strip()) or _by_pci_id(tables, value) or _by_capability(tables, str(value))
    return (
        _by_name(tables, str(value.get("name") or ""))
        or _by_pci_id(tables, value.get("pci_device_id"))
        or _by_capability(tables, str(value.get("compute_capability") or ""))
    )


@cache
def _by_name(tables: Tables, name: str) -> GpuRow | None:
    wanted = words(name)
    if not wanted:
        return None
    rows = tables.rows("gpus")
    for row in rows:
        if wanted in [words(one) for one in (row["model"], *row.get("names", ()))]:
            return row
    return _merge(name, [row for row in rows if wanted <= words(row["model"])])


def _by_pci_id(tables: Tables, value: object) -> GpuRow | None:
    """0x2235, 2235, 10de:2235 or 0x223510DE (device before vendor, as NVML writes it)."""
    digits = re.sub(r"[^0-9a-fx]", "", str(value or "").lower()).replace("0x", "").replace("x", "")
    if len(digits) == 8:
        digits = digits[:4] if digits.endswith("10de") else digits[4:]
    return (
        next((row for row in tables.rows("gpus") if digits.upper() in row["pci_ids"]), None)
        if len(digits) == 4
        else None
    )


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
        "fabric_manager": any(row["fabric_manager"] for row in rows),
        "forward_compat": all(row["forward_compat"] for row in rows),
        "kernel_modules": [
            flavour for flavour in rows[0]["kernel_modules"] if all(flavour in row["kernel_modules"] for row in rows)
        ],
        "ambiguous": [row["model"] for row in rows],
    }
