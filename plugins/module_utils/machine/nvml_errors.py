# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Classify NVML's return codes, and which of them concern a GPU's health."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

# nvmlReturn_t of nvml.h (https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceEnumvs.html).
ERRORS = {
    1: "uninitialized",
    2: "invalid_argument",
    3: "not_supported",
    4: "no_permission",
    6: "not_found",
    7: "insufficient_size",
    8: "insufficient_power",
    9: "driver_not_loaded",
    10: "timeout",
    11: "irq_issue",
    12: "library_not_found",
    13: "function_missing",
    14: "corrupted_inforom",
    15: "gpu_lost",
    16: "reset_required",
    17: "operating_system",
    18: "version_mismatch",
    19: "in_use",
    20: "memory",
    21: "no_data",
    22: "vgpu_ecc_not_supported",
    23: "insufficient_resources",
    24: "freq_not_supported",
    25: "argument_version_mismatch",
    26: "deprecated",
    27: "not_ready",
    28: "gpu_not_found",
    29: "invalid_state",
    30: "reset_type_not_supported",
    999: "unknown_error",
}
# The device does not have what was asked for, or this library cannot ask for it: no answer is due.
ABSENT = (
    "not_supported", "invalid_argument", "not_found", "function_missing", "vgpu_ecc_not_supported",
    "freq_not_supported", "argument_version_mismatch", "deprecated",
)  # fmt: skip
# After these the GPU cannot be used, see the descriptions there.
UNUSABLE = ("gpu_lost", "reset_required", "timeout", "insufficient_power")
# The driver is at odds with the GPU, which may still work.
TROUBLED = ("unknown_error", "irq_issue", "corrupted_inforom")


def worst(errors):
    """Return the code of {function: code} that tells most of the GPU; None where none tells of it."""
    present = set(errors.values())
    return next((code for code in UNUSABLE + TROUBLED if code in present), None)
