# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide how NCCL reaches the memory of GPUs from adapters, the way NCCL decides it: DMA buffers, else peer memory.

NCCL 2.30.7: dmaBufSupported of src/init.cc, src/transport/net_ib/gdr.cc. An EFA is used by libfabric instead, to which nvidia_peermem is
nothing: its own driver asks that of the GPUs (amzn/amzn-drivers, kernel/linux/efa/src/efa_p2p.c), and the kernel's EFA driver does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...documents.rdma import Adapter, Cuda, GpuDirect, Peermem, RdmaNode
from ...problems.problem import Problem
from .text import GPUDIRECT

DMA_BUF, PEERMEM, DRIVER, NONE, UNKNOWN = "dma-buf", "peermem", "driver", "none", "unknown"
EFA = "efa"
# What libibverbs answers: True and False are final, the rest is not known.
ANSWERS = {
    "supported": True, "unsupported": False, "no_symbol": False, "no_library": False, "no_devices": False, "not_listed": False,
}  # fmt: skip
# CUDA 11.7 has the attribute that NCCL asks for.
OLDEST_CUDA = 11070
# Up to this release NCCL looks for the clients that the RDMA core lists, not for the module (NVIDIA/nccl#1676).
LAST_WITHOUT_MODULE = (2, 22, 3)


@dataclass(frozen=True)
class Verdict:
    """The way NCCL reaches these GPUs (PCI addresses; none where they are not known) from an adapter, and why not better."""

    adapter: str
    gpus: tuple[str, ...]
    path: str
    reasons: tuple[Problem, ...] = ()


def verdicts(node: RdmaNode, nccl: Iterable[str] = ()) -> list[Verdict]:
    """Return a verdict for each adapter and each group of GPUs that fare alike. nccl: versions of the environments."""
    found = node.gpudirect or GpuDirect()
    oldest = min((version_of(text) for text in nccl if text), default=None)
    groups: dict[bool | None, list[str]] = {}
    for gpu, exports in sorted(found.cuda.gpus.items()):
        groups.setdefault(exports, []).append(gpu)
    return [
        _verdict(adapter, found, tuple(gpus), exports, oldest)
        for adapter in node.adapters
        for exports, gpus in (groups or {None: []}).items()
    ]


def version_of(text: str) -> tuple[int, ...]:
    """Return the numbers of a version such as 2.21.5+cuda12.4."""
    return tuple(int(number) for number in re.findall(r"\d+", text.partition("+")[0])[:3])


def _verdict(
    adapter: Adapter, found: GpuDirect, gpus: tuple[str, ...], exports: bool | None, nccl: tuple[int, ...] | None
) -> Verdict:
    answer, why = _adapter(adapter, found)
    offer, lacks = _gpus(found.cuda, gpus, exports)
    reasons = (*why, *lacks)
    if answer and offer:
        return Verdict(adapter.name, gpus, DMA_BUF)
    if None in (answer, offer) and False not in (answer, offer):
        return Verdict(adapter.name, gpus, UNKNOWN, reasons)
    if adapter.driver == EFA:
        return Verdict(adapter.name, gpus, *_own_driver(adapter, reasons))
    registered, peers = _peermem(found.peermem, nccl)
    path = PEERMEM if registered else UNKNOWN if registered is None else NONE
    return Verdict(adapter.name, gpus, path, (*reasons, *peers))


def _adapter(adapter: Adapter, found: GpuDirect) -> tuple[bool | None, list[Problem]]:
    answer = found.verbs.adapters.get(adapter.name)
    code = answer.code if answer else found.verbs.code
    registers = ANSWERS.get(code)
    detail = {"errno": answer.errno if answer else None}
    return registers, [] if registers else [_unknown("gpudirect_", code, adapter.name, detail)]


def _gpus(cuda: Cuda, gpus: tuple[str, ...], exports: bool | None) -> tuple[bool | None, list[Problem]]:
    if cuda.version is not None and cuda.version < OLDEST_CUDA:
        return False, [
            Problem("gpudirect_cuda_old", "libcuda", {"version": f"{cuda.version // 1000}.{cuda.version % 1000 // 10}"})
        ]
    if exports is None:
        return None, [_unknown("gpudirect_cuda_", cuda.code, "libcuda", {"status": cuda.status})]
    return exports, [] if exports else [Problem("gpudirect_not_exported", ", ".join(gpus))]


def _unknown(prefix: str, code: str, subject: str, detail: Mapping[str, Any]) -> Problem:
    """Return the reason for having no answer. A code without a sentence, or success without an answer, counts as not asked."""
    return Problem(prefix + (code if prefix + code in GPUDIRECT else "not_asked"), subject, detail)


def _own_driver(adapter: Adapter, reasons: tuple[Problem, ...]) -> tuple[str, tuple[Problem, ...]]:
    """Return (path, reasons) of an EFA without DMA buffers. Its driver says NVIDIA, or NVIDIA peermem, once it has found that of the GPUs."""
    if (adapter.p2p or "").startswith("NVIDIA"):
        return DRIVER, reasons
    code = "absent" if adapter.p2p is None else "none"
    return NONE, (*reasons, Problem(f"gpudirect_p2p_{code}", adapter.name))


def _peermem(peermem: Peermem, nccl: tuple[int, ...] | None) -> tuple[bool | None, list[Problem]]:
    if nccl and nccl <= LAST_WITHOUT_MODULE and not peermem.clients and peermem.module is not None:
        version = ".".join(map(str, nccl))
        return False, [Problem("gpudirect_peermem_unseen", "nvidia_peermem", {"version": version})]
    if peermem.registered:
        return True, []
    code = "unshown" if peermem.registered is None else "unregistered"
    if peermem.module is None:
        code = "unoffered" if peermem.offered is False else "absent"
    return peermem.registered, [Problem(f"gpudirect_peermem_{code}", "nvidia_peermem")]
