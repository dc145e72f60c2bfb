# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Transformer Engine: a core with wheels for each CUDA major, and an extension that a site compiles for its PyTorch."""

from __future__ import annotations

from typing import TypedDict

from ..extensions import Extension, ExtensionRow, releases
from ..facts import System
from ..keys import Key
from ..model import Candidate, Question
from ..rule import Context, Doubt, Rules
from ..tables import Subject, Tables
from ..versions import at_least, major, minor
from ..wheels import glibc_reason
from .pytorch.beside import Made, gpu_rule, on_pytorch, python_rule, pytorch_rule
from .pytorch.row import Torch


class TransformerEngineTable(TypedDict):
    sources: dict[str, str]
    min_cc: str
    min_cuda: str
    min_cudnn: str
    glibc: str
    majors: list[str]


TRANSFORMER_ENGINE_ROWS = Subject("transformer_engine", ExtensionRow, TransformerEngineTable)
MADE = Made("transformer_engine", "Transformer Engine", TRANSFORMER_ENGINE_ROWS, "Y1")
rule = Rules()
python_rule(rule, MADE)
pytorch_rule(rule, MADE, "Y2")
gpu_rule(rule, MADE, "Y2")


def _releases(tables: Tables, question: Question) -> list[Extension]:
    """Return each release with each of its cores; the variant is that of its core: cu13."""
    found = releases(MADE.name, tables.rows(TRANSFORMER_ENGINE_ROWS), question)
    majors = tables.beside(TRANSFORMER_ENGINE_ROWS)["majors"]
    return [Candidate(MADE.name, one.version, f"cu{cuda}", one.row) for one in found for cuda in majors]


@rule("transformer-engine-glibc", "transformer_engine", "os", sources=("Y1",))
def transformer_engine_glibc(context: Context, engine: Extension, os: System) -> str | None:
    return glibc_reason(
        f"Transformer Engine {engine.version}", context.tables.beside(TRANSFORMER_ENGINE_ROWS)["glibc"], os
    )


@rule("transformer-engine-pytorch-cuda", "transformer_engine", "pytorch", sources=("Y1", "Y2"))
def transformer_engine_pytorch_cuda(context: Context, engine: Extension, torch: Torch) -> str | None:
    """Its core is of the CUDA major that PyTorch brings, with a cuDNN that is new enough."""
    table, name = context.tables.beside(TRANSFORMER_ENGINE_ROWS), f"Transformer Engine {engine.version}"
    if torch.variant == "cpu" or not at_least(minor(torch.row["cuda"]), table["min_cuda"]):
        return f"{name} needs CUDA {table['min_cuda']} or newer, not PyTorch {torch.version}+{torch.variant}"
    cudnn = torch.row["cudnn"]
    if cudnn and not at_least(cudnn, table["min_cudnn"]):
        return (
            f"{name} needs cuDNN {table['min_cudnn']} or newer; PyTorch {torch.version}+{torch.variant} brings {cudnn}"
        )
    if engine.variant == f"cu{major(torch.row['cuda'])}":
        build = f"PyTorch {torch.version}+{torch.variant}"
        return None if cudnn else Doubt(f"the cuDNN of {build}, of which {name} needs {table['min_cudnn']} or newer")
    return f"{name} has no core of PyTorch {torch.version}+{torch.variant}'s CUDA in {engine.variant}"


TRANSFORMER_ENGINE = on_pytorch(
    MADE,
    rule,
    Key(
        name="transformer_engine",
        docs=(
            "Transformer Engine for PyTorch, as wheels of its core.",
            "The site has a wheel of its extension for the planned PyTorch; the package index has only the source of that.",
        ),
        sample='"2.9"',
        comment="with wheels: site",
    ),
    size={"cuda": 2000, "cpu": 2000},
    gpus=True,
    site=True,
    candidates=_releases,
    requirements=lambda tables, question, one, beside: [
        f"transformer-engine{part}=={one.version}" for part in ("", f"-{one.variant}", "-torch")
    ],
    system=("glibc",),
)
