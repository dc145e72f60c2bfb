# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""FlashAttention 2, whose wheels a site compiles for its PyTorch."""

from __future__ import annotations

from typing import TypedDict

from ..extensions import Extension, ExtensionRow
from ..keys import Key
from ..rule import Context, Rules
from ..tables import Subject
from ..versions import at_least, minor
from .pytorch.beside import Made, gpu_rule, on_pytorch, python_rule, pytorch_rule
from .pytorch.row import Torch


class FlashAttnTable(TypedDict):
    sources: dict[str, str]
    min_cc: str
    min_cuda: str


FLASH_ATTN_ROWS = Subject("flash_attn", ExtensionRow, FlashAttnTable)
MADE = Made("flash_attn", "FlashAttention", FLASH_ATTN_ROWS, "F1")
rule = Rules()
python_rule(rule, MADE)
pytorch_rule(rule, MADE, "F2")
gpu_rule(rule, MADE, "F2")


@rule("flash-attn-pytorch-cuda", "flash_attn", "pytorch", sources=("F2",))
def flash_attn_pytorch_cuda(context: Context, flash_attn: Extension, torch: Torch) -> str | None:
    first = context.tables.beside(FLASH_ATTN_ROWS)["min_cuda"]
    if torch.variant != "cpu" and at_least(minor(torch.row["cuda"]), first):
        return None
    return f"FlashAttention {flash_attn.version} is compiled with CUDA {first} or newer, not for PyTorch {torch.version}+{torch.variant}"


FLASH_ATTN = on_pytorch(
    MADE,
    rule,
    Key(
        name="flash_attn",
        docs=(
            "FlashAttention 2, of which the site has a wheel for the planned PyTorch; the package index has only its source.",
        ),
        sample='"2.8.3"',
        comment="with wheels: site",
    ),
    size={"cuda": 1000, "cpu": 1000},
    gpus=True,
    site=True,
)
