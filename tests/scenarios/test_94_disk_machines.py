# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine with two NVMe devices: role scratch makes an array of them, it survives boots, and health names a device that fails."""

import json

import pytest
from cluster import KEEP
from machine_hosts import Machines

from tests.lab.machines import qemu

pytestmark = pytest.mark.lab

PLAYBOOK = "tests/scenarios/stage.yml"
PRESENT = {"scratch_state": "present", "scratch_owner": "ansible", "scratch_disk_count": 2}
SIZE = 384  # MiB; mkfs.xfs wants 300 at least
BROKEN = """
[inject-error]
event = "none"
iotype = "read"
errno = "5"
"""
RELIABILITY_DEGRADED = 4  # bit 2
HEALTH = """
import json
from ansible_collections.allreduce.gpu.plugins.module_utils.health import host, host_reading
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
seen = host_reading.read_host(FileTree("/sys"), FileTree("/proc"), FileTree("/"))
judged = host.disks(seen) + host.nvme_health(seen, {"nvme_used_percent": 100, "max_nvme_media_errors": 0})
print(json.dumps({one["check"]: [finding["measured"] for finding in one["findings"]] for one in judged}))
"""


class Disks(Machines):
    """One machine; its devices can fail."""

    def scratch(self, **variables):
        """The number of changes of one run."""
        run = self.play(PLAYBOOK, "-e", json.dumps({**PRESENT, **variables}))
        assert run.status == 0, run.output[-6000:]
        return run.recap[self.hosts[0]]["changed"]

    def shell(self, command, check=True):
        return self.on(self.hosts[0], command, check).strip()

    def mounted(self):
        return self.shell("findmnt --noheadings --output SOURCE,FSTYPE /scratch || true").split()

    def health(self):
        """{check: [what it finds]} of the disks, by what module gpu_health judges of a node with GPUs."""
        return json.loads(self.python(self.hosts[0], HEALTH))


@pytest.fixture(scope="module")
def machine():
    made = Disks("disks", 1, "--disk", str(SIZE), "--disk", str(SIZE))
    yield made
    if not KEEP:
        made.down()


def test_10_an_array_of_all_blank_devices_survives_a_boot(machine):
    assert machine.scratch() > 0
    assert machine.scratch() == 0
    source, kind = machine.mounted()
    assert kind == "xfs"
    assert machine.shell("cat /sys/block/md*/md/level") == "raid0"
    assert machine.shell(f"readlink -f /dev/md/scratch {source} | sort -u | wc -l") == "1"
    machine.shell("su ansible -c 'echo kept > /scratch/data'; sync")
    machine.reboot(machine.hosts[0])
    assert machine.mounted() == [source, kind]  # not md127
    assert machine.shell("cat /scratch/data") == "kept"
    assert machine.scratch() == 0


def test_20_a_power_cut_leaves_an_array_that_comes_back(machine):
    machine.shell("su ansible -c 'echo synced > /scratch/other'; sync")
    machine.cut_power(machine.hosts[0])
    machine.power_on(machine.hosts[0])
    assert machine.shell("cat /scratch/data /scratch/other").split() == ["kept", "synced"]
    assert machine.scratch() == 0


def test_30_health_names_a_device_that_warns(machine):
    assert machine.health() == {"disks": [], "nvme_health": []}
    qemu.warn(machine.machine(machine.hosts[0]), 1, RELIABILITY_DEGRADED)
    found = machine.health()
    assert (found["disks"], len(found["nvme_health"])) == ([], 1) and "nvme1" in found["nvme_health"][0], found
    qemu.warn(machine.machine(machine.hosts[0]), 1, 0)
    assert machine.health()["nvme_health"] == []


def test_40_a_device_that_cannot_be_read(machine):
    """The machine boots without the scratch; role and health say why, and nothing is made anew."""
    host = machine.hosts[0]
    qemu.set_faults(machine.machine(host), 1, BROKEN)
    machine.reboot(host)
    assert machine.mounted() == []
    run = machine.play(PLAYBOOK, "-e", json.dumps(PRESENT))
    assert run.status != 0 and "all that is left is /dev/nvme0n1" in run.words, run.words[-3000:]
    array = machine.shell("ls -d /sys/block/md*").rpartition("/")[2]
    assert machine.health()["disks"] == [f"{array}: inactive"]
    qemu.set_faults(machine.machine(host), 1, "")
    machine.reboot(host)
    assert machine.shell("cat /scratch/data") == "kept"


def test_50_removal_keeps_the_data_until_it_is_to_be_destroyed(machine):
    assert machine.scratch(scratch_state="absent") > 0
    assert machine.mounted() == []
    assert machine.scratch(scratch_state="absent") == 0
    assert machine.scratch() > 0
    assert machine.shell("cat /scratch/data") == "kept"
    assert machine.scratch(scratch_state="absent", scratch_destroy_data=True) > 0
    assert machine.shell("wipefs --noheadings /dev/nvme0n1 /dev/nvme1n1") == ""
    machine.reboot(machine.hosts[0])
    assert machine.mounted() == []
    assert machine.shell("ls /sys/block | grep ^md || true") == ""
