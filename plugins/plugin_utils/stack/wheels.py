# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the wheels of frameworks have in common: the code they hold for GPUs, and the glibc they need."""

from __future__ import annotations

from typing import Literal

from .facts import GpuModel, System
from .rule import Context
from .versions import at_least, major, minor


def reach(capability: str, sass: list[str] | None, ptx: str | None) -> Literal["sass", "ptx"] | None:
    """Return how code reaches a GPU: 'sass' (same major, not above the GPU's minor), 'ptx' (any lower), or not at all.

    None in the tables means the list is not known; then nothing is claimed and 'sass' is returned.
    """
    if sass is None and ptx is None:
        return "sass"
    if any(major(one) == major(capability) and at_least(capability, one) for one in sass or ()):
        return "sass"
    return "ptx" if ptx and at_least(capability, ptx) else None


def too_early(context: Context, name: str, cuda: str, gpu: GpuModel, sass: list[str] | None) -> str | None:
    """Return why a wheel runs on no such GPU where nobody looked which code it holds: a compiler knows no generation after it."""
    first = context.tables.first_cuda(gpu.row["compute_capability"])
    if sass is not None or at_least(minor(cuda), first):
        return None
    return f"{name} is built with CUDA {minor(cuda)}, and the generation of {gpu.version} begins with CUDA {first}"


def glibc_reason(name: str, floor: str | None, os: System) -> str | None:
    """Return why a wheel does not load on a distribution with an older glibc; nothing is claimed where one is not known."""
    have = os.row["glibc"]
    if have and floor and not at_least(have, floor):
        return f"{name} needs glibc {floor} or newer; {os.version} has {have}"
    return None
