# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences about what was measured: GPUDirect, and the chain of a port."""

from __future__ import annotations

from ...problems.problem import Problem

_OF = "{adapter} at {subject}: {origin} class {class}, which is DSCP {dscp}"

GPUDIRECT = {
    "gpudirect_unsupported": "{subject} cannot register DMA buffers (error {errno}): its driver or the kernel is too old.",
    "gpudirect_no_symbol": "libibverbs is older than 1.12 (rdma-core 34) and cannot register DMA buffers for {subject}.",
    "gpudirect_no_library": "libibverbs is not installed, and without it NCCL does not use {subject} at all.",
    "gpudirect_no_devices": "libibverbs shows no adapter, not even {subject}: its provider or ib_uverbs is missing.",
    "gpudirect_not_listed": "libibverbs does not show {subject}: its provider is missing.",
    "gpudirect_not_opened": "{subject} could not be opened (error {errno}), so it is not known whether it registers DMA buffers.",
    "gpudirect_no_domain": "{subject} gave no protection domain (error {errno}), so it is not known whether it registers DMA buffers.",
    "gpudirect_crashed": "libibverbs crashed before {subject} could answer; install the release that matches the kernel's driver.",
    "gpudirect_timeout": "libibverbs did not answer for {subject} in time.",
    "gpudirect_not_asked": "{subject} was not asked.",
    "gpudirect_cuda_old": "The driver offers CUDA {version}, and DMA buffers need 11.7 or later.",
    "gpudirect_cuda_no_library": "{subject} is not installed, so the GPUs could not be asked for DMA buffers.",
    "gpudirect_cuda_no_gpus": "{subject} shows no GPU.",
    "gpudirect_cuda_refused": "{subject} does not start (status {status} of cuda.h), so the GPUs could not be asked for DMA buffers.",
    "gpudirect_cuda_crashed": "{subject} crashed before the GPUs could be asked for DMA buffers.",
    "gpudirect_cuda_timeout": "{subject} did not answer in time.",
    "gpudirect_cuda_not_asked": "The GPUs were not asked for DMA buffers.",
    "gpudirect_cuda_ok": "{subject} shows no GPU.",
    "gpudirect_not_exported": "The GPUs {subject} do not export DMA buffers, which requires the driver's open kernel modules.",
    "gpudirect_peermem_unoffered": "The RDMA core of this kernel takes no peer memory clients, so {subject} cannot help.",
    "gpudirect_peermem_absent": "{subject} is not loaded.",
    "gpudirect_peermem_unregistered": "{subject} is loaded, but the RDMA core does not list it: it was built before the RDMA stack.",
    "gpudirect_peermem_unshown": "{subject} is loaded, but nothing shows whether it is registered with the RDMA core.",
    "gpudirect_p2p_absent": "The driver of {subject} is the kernel's, which reaches GPUs by DMA buffers only; EFA's installer has another.",
    "gpudirect_p2p_none": "The driver of {subject} has not found NVIDIA's.",
    "gpudirect_peermem_unseen": (
        "NCCL {version} looks for clients that the RDMA core lists, and {subject} is not among them; 2.23 and later look for the module."
    ),
}

CHAIN = {
    "chain_whole": _OF + ", priority {priority}, lossless, traffic class {share}.",
    "chain_no_class": (
        "{adapter} at {subject}: NCCL_IB_TC is '{value}', which is not a number from 0 to 255, so it is not known what NCCL uses."
    ),
    "chain_unknown": _OF + ", and the port does not show which priority that has.",
    "chain_untrusted": _OF + ", which the port ignores: the traffic has priority {priority} and is lossy.",
    "chain_unmapped": _OF + ", which no application entry maps: the traffic has priority {priority} and is lossy.",
    "chain_lossy": _OF + " and priority {priority}, which has no flow control (PFC is on for: {pfc}), so it is lossy.",
    "chain_no_buffer": _OF + " and priority {priority} with flow control, but its buffer {buffer} has no room.",
    "chain_shared_buffer": _OF
    + " and priority {priority} with flow control, but lossy priorities ({others}) fill its buffer {buffer}.",
    "chain_no_share": _OF
    + " and priority {priority} with flow control, but its traffic class {number} has no bandwidth.",
}

# Who decides on the class.
ORIGINS = {
    "asked": "NCCL uses",
    "default": "nothing sets NCCL_IB_TC, so NCCL uses",
    "forced": "the driver forces",
}

SENTENCES = {**GPUDIRECT, **CHAIN}


def describe(one: Problem) -> str:
    """Return the sentence for one finding."""
    detail = dict(one.detail)
    if "origin" in detail:
        detail["origin"] = ORIGINS[detail["origin"]]
    words = {key: ", ".join(map(str, value)) if isinstance(value, list) else value for key, value in detail.items()}
    return SENTENCES[one.code].format(subject=one.subject, **words)
