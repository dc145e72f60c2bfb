# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The services that a node needs so that its GPUs reach each other: decided here alone, by the board they are on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .model import Gpu
from .rows import BoardRow, Service
from .tables import Tables


def fabric_services(tables: Tables, gpus: Sequence[Gpu], nvswitches: int | None) -> frozenset[Service]:
    """Return the services of the NVLink fabric; nvswitches: how many are on the node's PCI bus, None where that was not measured."""
    if gpus and nvswitches:
        return frozenset({"fabric_manager"})
    boards = [row for row in tables.rows("boards") if _is_full(row, gpus)]
    seen = [row for row in boards if row["switches"] != "pci" or nvswitches is None]
    return frozenset(service for row in seen for service in row["services"])


def _is_full(row: BoardRow, gpus: Iterable[Gpu]) -> bool:
    """A guest with a part of a board has the fabric from its hypervisor. A short name may stand for several models."""
    able = [
        gpu for gpu in gpus if not gpu.row.get("vgpu") and {gpu.model, *gpu.row.get("ambiguous", ())} & set(row["gpus"])
    ]
    return sum(gpu.count for gpu in able) >= row["full"]
