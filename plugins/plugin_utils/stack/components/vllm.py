# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""vLLM, whose wheels are compiled for one build of one PyTorch."""

from __future__ import annotations

from typing import TypedDict

from ..extensions import Extension, ExtensionRow
from ..keys import Key
from ..rule import Context, Doubt, Rules
from ..tables import Subject
from ..versions import major, minor
from .cuda import Toolkit
from .pytorch.beside import Made, gpu_rule, on_pytorch, python_rule, pytorch_rule, wheel_rules
from .pytorch.row import Torch


class VllmTable(TypedDict):
    sources: dict[str, str]
    min_cc: str


VLLM_ROWS = Subject("vllm", ExtensionRow, VllmTable)
MADE = Made("vllm", "vLLM", VLLM_ROWS, "V2")
rule = Rules()
python_rule(rule, MADE)
wheel_rules(rule, MADE)
pytorch_rule(rule, MADE)
gpu_rule(rule, MADE, "V3")


@rule("vllm-pytorch-build", "vllm", "pytorch", sources=("V2", "V3"))
def vllm_pytorch_build(context: Context, vllm: Extension, torch: Torch) -> str | None:
    """Refuse every build of PyTorch but that of the general package index, which vLLM's wheels are compiled for, and its CUDA."""
    cuda = vllm.row.get("cuda")
    if torch.row.get("default") and cuda in (None, major(torch.row["cuda"])):
        return None
    theirs = f"CUDA {cuda} and " if cuda else ""
    return f"vLLM {vllm.version} is compiled for {theirs}the PyTorch of the general package index, not for PyTorch {torch.version}+{torch.variant}"


@rule("vllm-cuda-major", "cuda", "pytorch", sources=("V2", "V3"), needs="vllm")
def vllm_cuda_major(context: Context, cuda: Toolkit, torch: Torch) -> str | None:
    """vLLM compiles kernels at run time with the toolkit of the host; they have to fit the CUDA of PyTorch."""
    if cuda.absent or torch.variant == "cpu" or major(cuda.version) == major(torch.row["cuda"]):
        return None
    build = f"PyTorch {torch.version}+{torch.variant}"
    return Doubt(
        f"whether vLLM compiles kernels for {build} with the toolkit of CUDA {minor(cuda.version)} on the host"
    )


VLLM = on_pytorch(
    MADE,
    rule,
    Key(name="vllm", docs=("vLLM, for GPUs.",), sample="latest"),
    size={"cuda": 4000, "cpu": 4000},
    gpus=True,
    system=("glibc",),
)
