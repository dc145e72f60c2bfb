# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines


def test_counters_of_a_gpu_with_ecc(counters):
    machine = machines.a40_pcie().change(
        1, settings=(("ecc_errors.1.0", "2"), ("remapped_rows", "0 2 1 0"), ("throttle_reasons", "0x41"))
    )
    gpus = counters(machine)
    found = gpus["0000:31:00.0"]
    assert found["uncorrected_errors"] == 2
    assert found["remapped_rows"] == {"correctable": 0, "uncorrectable": 2, "pending": 1, "failed": 0}
    assert found["retired_pages_pending"] is None
    assert found["clock_reasons"] == ["idle", "hardware_thermal"]
    assert gpus["0000:17:00.0"]["uncorrected_errors"] == 0


def test_what_a_gpu_does_not_count_is_none(counters):
    found = counters(machines.rtx_3090())["0000:01:00.0"]
    assert (found["uncorrected_errors"], found["remapped_rows"]) == (None, None)


def test_a_lost_gpu_has_no_counters(counters):
    assert "0000:98:00.0" not in counters(machines.a40_pcie().change(2, lost=True))
