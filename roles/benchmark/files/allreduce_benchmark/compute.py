# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work of one device alone: matrix products per precision, and copies within its memory."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

import torch

from .formulas import gemm_teraflops, gigabytes_per_second
from .place import Place
from .records import Record, Subject
from .timing import attempt, repetitions

# precision: (type of the matrices, whether products of float32 may use TF32, least compute capability)
PRECISIONS = {
    "fp32": (torch.float32, False, (0, 0)),
    "tf32": (torch.float32, True, (8, 0)),
    "bf16": (torch.bfloat16, False, (8, 0)),
    "fp16": (torch.float16, False, (5, 3)),
}
ON_PROCESSORS = ("fp32", "bf16")
GEMM_SIZE = {"cuda": 8192, "cpu": 1024}
COPY_BYTES = {"cuda": 1 << 30, "cpu": 1 << 27}


def measure_gemm(place: Place, options: Namespace) -> Iterator[Record]:
    """Measure products of two square matrices in each precision."""
    size = options.gemm_size or GEMM_SIZE[place.device.type]
    for precision in PRECISIONS:
        case = {"precision": precision, "size": size}
        subject = Subject("gemm", "TFLOP/s", place.device.type, place.rank, case)
        refusal = unsupported(place, precision)
        yield (
            subject.not_measured(*refusal) if refusal else attempt(subject, lambda: _gemm(place, options, subject))  # noqa: B023 - called at once
        )


def unsupported(place: Place, precision: str) -> tuple[str, str] | None:
    """Return code and reason where a device does not have a precision."""
    if not place.is_cuda:
        return (
            None if precision in ON_PROCESSORS else ("no_gpu", f"{precision} is measured on GPUs; this rank has none.")
        )
    least, found = PRECISIONS[precision][2], torch.cuda.get_device_capability(place.device)
    if found >= least:
        return None
    return (
        "not_supported",
        f"{precision} begins at compute capability {least[0]}.{least[1]}; this GPU has {found[0]}.{found[1]}.",
    )


def _gemm(place: Place, options: Namespace, subject: Subject) -> Record:
    kind, with_tf32, _least = PRECISIONS[subject.case["precision"]]
    size, before = subject.case["size"], torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if with_tf32 else "highest")
    try:
        left, right = (torch.randn(size, size, device=place.device).to(kind) for _matrix in range(2))
        product = torch.empty(size, size, device=place.device, dtype=kind)
        found = repetitions(place, lambda: torch.mm(left, right, out=product), options.repeats, options.seconds)
    finally:
        torch.set_float32_matmul_precision(before)
    return subject.measured([gemm_teraflops(size, one) for one in found])


def measure_memory(place: Place, options: Namespace) -> Iterator[Record]:
    """Measure a copy within the device's memory; each byte is read once and written once."""
    size = COPY_BYTES[place.device.type]
    if place.is_cuda:
        size = min(size, torch.cuda.mem_get_info(place.device)[0] // 4)
    subject = Subject("memory_copy", "GB/s", place.device.type, place.rank, {"bytes": size})

    def copy() -> Record:
        source = torch.zeros(size, dtype=torch.uint8, device=place.device)
        target = torch.empty_like(source)
        found = repetitions(place, lambda: target.copy_(source), options.repeats, options.seconds)
        return subject.measured([gigabytes_per_second(2 * size, one) for one in found])

    yield attempt(subject, copy)
