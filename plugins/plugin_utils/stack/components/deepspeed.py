# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DeepSpeed, whose operators are compiled on the host when they are first used."""

from __future__ import annotations

from typing import TypedDict

from ..component import Beside
from ..extensions import Extension, ExtensionRow
from ..keys import Key
from ..model import Question
from ..rule import Context, Rules
from ..tables import Subject, Tables
from ..versions import major, minor
from .cuda import Toolkit
from .pytorch.beside import Made, on_pytorch, python_rule, pytorch_rule
from .pytorch.row import Torch


class DeepspeedTable(TypedDict):
    """any_minor: CUDA majors of which a toolkit compiles for a PyTorch of any minor."""

    sources: dict[str, str]
    any_minor: list[str]


DEEPSPEED_ROWS = Subject("deepspeed", ExtensionRow, DeepspeedTable)
MADE = Made("deepspeed", "DeepSpeed", DEEPSPEED_ROWS, "Q1")
rule = Rules()
python_rule(rule, MADE)
pytorch_rule(rule, MADE)


@rule("deepspeed-cuda", "cuda", "pytorch", sources=("Q2",), needs="deepspeed")
def deepspeed_cuda(context: Context, cuda: Toolkit, torch: Torch) -> str | None:
    """A toolkit that is there compiles its operators, and has to go with PyTorch's CUDA."""
    if cuda.absent or torch.variant == "cpu":
        return None
    ours, theirs = minor(cuda.version), minor(torch.row["cuda"])
    free = context.tables.beside(DEEPSPEED_ROWS)["any_minor"]
    if ours == theirs or (major(ours) == major(theirs) and major(ours) in free):
        return None
    return f"DeepSpeed does not compile with CUDA {ours} for PyTorch {torch.version}+{torch.variant}, which runs on {theirs}"


def _warnings(tables: Tables, question: Question, one: Extension, beside: Beside) -> list[str]:
    if "cuda" in question.constraints or question.accelerator == "cpu":
        return []
    return [
        f"DeepSpeed {one.version} compiles its operators when they are first used, for which the host has no CUDA toolkit: ask for "
        "cuda as well, or use what needs none"
    ]


DEEPSPEED = on_pytorch(
    MADE,
    rule,
    Key(
        name="deepspeed",
        docs=("DeepSpeed, of which the site has a wheel; the package index has only its source.",),
        sample='"0.19"',
        comment="with wheels: site",
    ),
    size={"cuda": 100, "cpu": 100},
    site=True,
    warnings=_warnings,
)
