# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of NVML's return codes against the binding that the collection installs."""

import pynvml
import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.nvml_errors import (
    ABSENT,
    ERRORS,
    TROUBLED,
    UNUSABLE,
    worst,
)

# Names that say less, or something else, than the code.
RENAMED = {
    "function_not_found": "function_missing", "gpu_is_lost": "gpu_lost", "lib_rm_version_mismatch": "version_mismatch",
    "unknown": "unknown_error",
}  # fmt: skip


def test_the_numbers_are_those_of_the_header():
    names = {value: name for name, value in vars(pynvml).items() if name.startswith("NVML_ERROR_")}
    codes = {number: names[number].replace("NVML_ERROR_", "").lower() for number in ERRORS}
    assert {number: RENAMED.get(name, name) for number, name in codes.items()} == ERRORS
    # Deprecated: "Multiple initializations are now allowed through ref counting".
    assert set(names) - set(ERRORS) == {pynvml.NVML_ERROR_ALREADY_INITIALIZED}


def test_every_class_has_known_codes_and_none_twice():
    classed = ABSENT + UNUSABLE + TROUBLED
    assert set(classed) <= set(ERRORS.values())
    assert len(classed) == len(set(classed))


@pytest.mark.parametrize(
    ("errors", "code"),
    [
        ({}, None),
        ({"DeviceGetName": "no_permission"}, None),
        ({"DeviceGetName": "unknown_error", "DeviceGetUUID": "gpu_lost"}, "gpu_lost"),
        ({"DeviceGetName": "timeout", "DeviceGetUUID": "reset_required"}, "reset_required"),
    ],
)
def test_the_worst_error(errors, code):
    assert worst(errors) == code
