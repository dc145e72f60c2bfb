# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a recorded machine a lab host sees, which has processors, memory and processes of its own."""

from ansible_collections.allreduce.gpu.tests.lab.nvml import machines, recording


def written(root):
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() or path.is_symlink()}


def test_a_lab_host_keeps_its_own_processors_and_memory(tmp_path):
    """Its /sys/devices has the recorded one laid over it, and the number of processors is read there."""
    recording.record(machines.hgx_h100(), tmp_path, around=False)
    assert not {name for name in written(tmp_path) if "/system/" in name and "/system/node/" not in name}
    assert {name.split("/")[1] for name in written(tmp_path) if name.startswith("proc/")} == {"driver"}
    assert not (tmp_path / "root").exists()


def test_a_recorded_machine_has_what_is_around_its_gpus(tmp_path):
    recording.record(machines.hgx_h100().with_files({"root/etc/nccl.conf": "A=1\n"}), tmp_path)
    expected = {
        "sys/devices/system/cpu/online",
        "proc/meminfo",
        "proc/self/ns/pid",
        "proc/uptime",
        "root/etc/nccl.conf",
    }
    assert expected <= written(tmp_path)


def test_a_lab_host_sees_adapters_as_libibumad_reads_them(tmp_path):
    recording.record(machines.hgx_h100(), tmp_path, around=False)
    assert (tmp_path / "sys/class/infiniband/mlx5_7/node_type").read_text() == "1: CA\n"
    assert (tmp_path / "sys/class/infiniband/mlx5_7/ports/1/phys_state").read_text() == "5: LinkUp\n"


def test_instances_have_device_numbers(tmp_path):
    recording.record(machines.a100_mig(), tmp_path)
    assert (tmp_path / "proc/driver/nvidia-caps/mig-minors").read_text() == (
        "config 1\nmonitor 2\ngpu0/gi1/access 3\ngpu0/gi1/ci0/access 4\ngpu0/gi2/access 5\ngpu0/gi2/ci0/access 6\n"
    )
