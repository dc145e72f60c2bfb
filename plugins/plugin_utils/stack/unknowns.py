# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which limits of a plan nobody has verified: what the tables leave empty is unknown, and is said."""

from __future__ import annotations

from collections.abc import Iterator

from .components.cupy import Cupy
from .components.driver.row import Driver
from .components.pytorch import Torch
from .components.tensorflow import Tensorflow
from .model import Problem, Solution
from .slots import environment_names
from .solution import inside, on_host
from .versions import major
from .wording import listed


def unknowns(problem: Problem, chosen: Solution) -> list[str]:
    """Return a sentence for every limit that could not be checked."""
    found = [*_of_the_system(problem, chosen)]
    host = on_host(chosen)
    if "driver" in host:
        found += _of_the_driver(host["driver"])
    for name in environment_names(problem):
        parts = inside(chosen, name)
        if "pytorch" in parts:
            found += _of_pytorch(problem, parts["pytorch"], parts.get("tensorflow"))
        if "tensorflow" in parts and problem.accelerator == "cuda":
            found += _of_tensorflow(parts["tensorflow"])
        if "cupy" in parts:
            found += _of_cupy(problem, parts["cupy"])
    return [f"not verified: {text}" for text in found]


def _of_the_system(problem: Problem, chosen: Solution) -> Iterator[str]:
    """Yield what is not known of the distribution and matters to this plan."""
    row, name = problem.system, f"{problem.system['id']} {problem.system['version']}"
    cuda = on_host(chosen).get("cuda")
    unknown = {
        "its glibc": row["glibc"] is None and {"pytorch", "tensorflow"} & set(problem.frameworks),
        "its g++": row["gcc"] is None and "horovod" in problem.frameworks,
        "the first CUDA published for it": row["cuda_first"] is None and cuda is not None,
    }
    texts = [text for text, matters in unknown.items() if matters]
    if texts:
        yield f"{listed(texts)}, of {name}"


def _of_the_driver(driver: Driver) -> Iterator[str]:
    branch = driver.row["branch"]
    if branch["status"] == "unknown":
        yield f"how long NVIDIA supports driver branch {branch['branch']}"


def _of_pytorch(problem: Problem, torch: Torch, beside: Tensorflow | None) -> Iterator[str]:
    """Yield what is not known of PyTorch's wheel, and of what it shares with TensorFlow in one environment."""
    name = f"PyTorch {torch.version}+{torch.variant}"
    if torch.row["release"]["glibc"] is None:
        yield f"the glibc that {name} needs"
    if torch.variant == "cpu":
        return
    if problem.gpus and torch.row.get("sass") is None and torch.row.get("ptx") is None:
        yield f"the GPUs that {name} holds code for"
    if beside and beside.row["pins"] and major(beside.row["cuda"]) == major(torch.row["cuda"]):
        libraries = {"cuDNN": torch.row.get("cudnn"), "NCCL": torch.row.get("nccl")}
        texts = [library for library, value in libraries.items() if value is None]
        if texts:
            yield f"the {listed(texts)} of {name}, which TensorFlow {beside.version} limits"


def _of_tensorflow(tensorflow: Tensorflow) -> Iterator[str]:
    if tensorflow.row["sass"] is None and tensorflow.row["ptx"] is None:
        yield f"the GPUs that TensorFlow {tensorflow.version} holds code for"


def _of_cupy(problem: Problem, cupy: Cupy) -> Iterator[str]:
    """Yield which end of the GPUs that CuPy supports is not known."""
    ends = {"oldest": cupy.row["min_cc"], "newest": cupy.row["max_cc"]}
    texts = [end for end, value in ends.items() if value is None]
    if problem.gpus and texts:
        yield f"the {listed(texts)} GPU generation that CuPy {cupy.version} supports"
