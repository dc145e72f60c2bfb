# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from ansible_collections.allreduce.gpu.plugins.module_utils.health import reading as health_reading
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines

# As /dev/kmsg gives them.
LOG = """6,1234,5678901,-;nvidia 0000:07:00.0: enabling device
3,1300,99999,-;NVRM: Xid (PCI:0000:07:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
3,1301,99999,-;NVRM: Xid (PCI:0000:07:00): 79, pid=1, GPU has fallen off the bus.
3,1302,99999,-;NVRM: Xid (PCI:0001:b1:00): 31, pid=77, name=python
3,1303,99999,-;NVRM: Xid (0000:03:00): 14, Channel 00000001
"""


def test_xids_are_found_once_each_as_old_and_new_drivers_write_them():
    assert health_reading.find_xids(LOG) == [("0000:07:00", 79), ("0001:b1:00", 31), ("0000:03:00", 14)]


def test_no_xid_in_other_text():
    assert health_reading.find_xids("NVRM: loading NVIDIA UNIX x86_64 Kernel Module") == []


def test_a_log_that_is_missing_is_none(tmp_path):
    assert health_reading.read_kernel_log(str(tmp_path / "kmsg")) is None


def test_a_log_is_read_to_its_end(tmp_path):
    (tmp_path / "kmsg").write_text(LOG)
    assert health_reading.read_kernel_log(str(tmp_path / "kmsg")) == LOG


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
