# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Common parts of the wheels of frameworks: the code they hold for GPUs, and the glibc they need."""

from __future__ import annotations

from typing import Literal

from .facts import GpuModel, System
from .rule import Context, Doubt
from .versions import at_least, major, minor


def reach(capability: str, sass: list[str] | None, ptx: str | None) -> Literal["sass", "ptx"] | None:
    """Return the way in which code reaches a GPU: 'sass' (same major, not above the GPU's minor), 'ptx' (any lower), or not at all.

    None in the tables means the list is not known; then 'sass' is returned, and code_reason doubts it.
    """
    if sass is None and ptx is None:
        return "sass"
    if any(major(one) == major(capability) and at_least(capability, one) for one in sass or ()):
        return "sass"
    return "ptx" if ptx and at_least(capability, ptx) else None


def code_reason(
    context: Context, name: str, cuda: str, gpu: GpuModel, sass: list[str] | None, ptx: str | None
) -> str | None:
    """Return the reason why a wheel holds no code for a GPU; where that is not known, one of a compiler older than the GPU's generation."""
    capability = gpu.row["compute_capability"]
    if reach(capability, sass, ptx) is None:
        return f"{name} holds no code for {gpu.version} (compute capability {capability})"
    first = context.tables.first_cuda(capability)
    if sass is None and not at_least(minor(cuda), first):
        return f"{name} is built with CUDA {minor(cuda)}, and the generation of {gpu.version} begins with CUDA {first}"
    return Doubt(f"the GPUs that {name} holds code for") if sass is None and ptx is None else None


def glibc_reason(name: str, floor: str | None, os: System) -> str | None:
    """Return the reason why a wheel does not load on a distribution with an older glibc."""
    have = os.row["glibc"]
    if floor is None:
        return Doubt(f"the glibc that {name} needs")
    if have is None:
        return Doubt(f"the glibc of {os.version}")
    return None if at_least(have, floor) else f"{name} needs glibc {floor} or newer; {os.version} has {have}"
