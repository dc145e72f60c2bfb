# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Triton, of which each release of PyTorch requires one."""

from __future__ import annotations

from typing import TypedDict

from ..extensions import Extension, ExtensionRow, torch_reason
from ..keys import Key
from ..rule import Context, Rules
from ..tables import Subject
from .pytorch.beside import Made, gpu_rule, on_pytorch, python_rule, wheel_rules
from .pytorch.row import Torch


class TritonTable(TypedDict):
    sources: dict[str, str]
    min_cc: str


TRITON_ROWS = Subject("triton", ExtensionRow, TritonTable)
MADE = Made("triton", "Triton", TRITON_ROWS, "T2")
rule = Rules()
python_rule(rule, MADE)
wheel_rules(rule, MADE)
gpu_rule(rule, MADE, "T5")


@rule("triton-pytorch", "triton", "pytorch", sources=("T2",))
def triton_pytorch(context: Context, triton: Extension, torch: Torch) -> str | None:
    """PyTorch requires one release of Triton exactly."""
    if torch_reason("Triton", triton, torch) is None:
        return None
    return f"PyTorch {torch.version} requires a Triton other than {triton.version}, which goes with PyTorch {triton.row['torch'].removeprefix('==')}"


TRITON = on_pytorch(
    MADE,
    rule,
    Key(name="triton", docs=("Triton, as PyTorch requires it, for GPUs.",), sample='"3.6"'),
    size={"cuda": 700, "cpu": 700},
    gpus=True,
    system=("glibc",),
)
