# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts that rules look at in addition to what is chosen, each a candidate of its own kind."""

from __future__ import annotations

from .model import Candidate
from .rows import DistroRow, GpuRow

System = Candidate[DistroRow]
GpuModel = Candidate[GpuRow]
Machine = Candidate[None]
AnsibleCore = Candidate[None]
Kernel = Candidate[None]
Compiler = Candidate[None]
Mig = Candidate[None]


def has_compiler(compiler: Compiler) -> str:
    """Return whose g++ it is, and which."""
    return f"{compiler.variant or 'the host'} has {compiler.version}"
