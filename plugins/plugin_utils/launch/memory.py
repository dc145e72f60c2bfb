# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Exceptions of a rank that ran out of memory, by their types: messages differ between releases. Pure."""

from __future__ import annotations

from collections.abc import Iterable

GPU, HOST, EITHER = "gpu_memory", "main_memory", "memory"
MEANING = {GPU: "GPU memory", HOST: "main memory", EITHER: "memory"}
PAGE = "docs/training.md, 'Out of memory', says what to do"
# PyTorch from 2.5 on and before it (torch/csrc/Exceptions.cpp), CuPy, TensorFlow, whose type does not say which memory; Python.
TYPES = {
    "torch.OutOfMemoryError": GPU,
    "torch.cuda.OutOfMemoryError": GPU,
    "cupy.cuda.memory.OutOfMemoryError": GPU,
    "tensorflow.python.framework.errors_impl.ResourceExhaustedError": EITHER,
    "builtins.MemoryError": HOST,
}


def exhausted(names: Iterable[str]) -> tuple[str, str] | None:
    """Return (code, type) of the first of an exception's types that means a lack of memory; None without one."""
    return next(((TYPES[name], name) for name in names if name in TYPES), None)


def describe_exhausted(code: str, name: str) -> str:
    """Return `ran out of GPU memory (torch.OutOfMemoryError)`."""
    return f"ran out of {MEANING[code]} ({name.removeprefix('builtins.')})"
