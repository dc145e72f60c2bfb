# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power fails at eleven points of one site, each further on than the last; then disks are full."""

import json
import re
import time

import pytest
from cluster import KEEP
from driver_machine import DriverMachine, request
from fault_host import last_message

pytestmark = pytest.mark.lab

STACK = {**request("550")["gpu_stack_request"], "pytorch": "2.13.0", "pytorch_index": "cpu", "horovod": "none"}
WANTED = {
    "gpu_stack_request": STACK,
    "nvidia_driver_module_parameters": {"NVreg_PreserveVideoMemoryAllocations": 1},
    "tuning_state": "present",
    "tuning_kernel_arguments": ["iommu=pt"],
    "health_state": "present",
    "firewall_state": "present",
}
# As NVIDIA's archives are laid out, and large enough to be cut off.
PACK = """
set -eu
cd /root; mkdir -p pack/cudnn-linux-x86_64-8.9.7.29_cuda12-archive/lib pack/cudnn-linux-x86_64-8.9.7.29_cuda12-archive/include
cd pack/*; echo '#define CUDNN_MAJOR 8' > include/cudnn_version.h; head -c 60M /dev/urandom > lib/libcudnn.so.8.9.7
cd ..; tar -c * | xz -0 > /root/cudnn.tar.xz
sha256sum /root/cudnn.tar.xz | cut -d' ' -f1
"""
# (role, task, seconds after it has begun), in the order of the run.
POINTS = {
    "packages": ("base", "Install packages", 8),
    "repository": ("cuda_repository", "Write key, source and priority", 2),
    "driver": ("nvidia_driver", "Install and hold the planned driver packages", 10),
    "module": ("nvidia_driver", "Install and hold the planned driver packages", 40),
    "initramfs": ("nvidia_driver", "Block nouveau and set module parameters", 8),
    "archive": ("cudnn", "Unpack the archive", 4),
    "keys": ("cluster_ssh", "Ensure the user's key pair and read the record of all nodes", 2),
    "lock": ("frameworks", "Record the solution as a lock", 1),
    "environment": ("frameworks", "Install environment ", 40),
    "boot loader": ("tuning", "Apply the settings and record the previous values", 6),
    "health": ("health", "Install the program, its declaration and its units", 2),
}
# A small file system of its own, as installers make it.
OWN_BOOT = """
set -eu
cp -ax /boot /mnt/; mount -t tmpfs -o size=160m tmpfs /boot; cp -a /mnt/boot/. /boot/
"""
FILL = "fallocate -l $(( ($(df --output=avail -k {place} | tail -1) - {left}) * 1024 )) {place}/filler"


class Powered(DriverMachine):
    """A machine with a GPU on its bus that gets the whole stack."""

    def __init__(self):
        super().__init__("power", "--memory", "4096")
        checksum = self.run(PACK)
        archive = {"cudnn_archive": "file:///root/cudnn.tar.xz", "cudnn_archive_checksum": f"sha256:{checksum}"}
        self.wanted = {**WANTED, **archive}

    def site(self, **more):
        return self.play("playbooks/site.yml", "-e", json.dumps({**self.wanted, **more}))

    def converges(self, **more):
        """The number of changes of a run that succeeds."""
        run = self.site(**more)
        assert run.status == 0, run.output[-6000:]
        return run.recap[self.host]["changed"]

    def cut_at(self, role, task, seconds):
        """Run site, and cut the power so many seconds after a task has begun; then boot."""
        process = self.start("playbooks/site.yml", "-e", json.dumps(self.wanted))
        said = []
        while f"allreduce.gpu.{role} : {task}" not in (said[-1] if said else ""):
            said.append(process.stdout.readline())
            assert said[-1], "".join(said[-80:])
        time.sleep(seconds)
        assert process.poll() is None, "the run had ended"
        self.cut_power(self.host)
        process.kill()
        process.communicate()
        self.power_on(self.host)


@pytest.fixture(scope="module")
def machine():
    made = Powered()
    yield made
    if not KEEP:
        made.down()


@pytest.mark.parametrize("point", POINTS)
def test_10_it_boots_and_no_file_is_half_written(machine, point):
    machine.cut_at(*POINTS[point])
    assert machine.broken_files(machine.host) == ""


def test_20_the_next_run_makes_it_good(machine, tmp_path):
    machine.converges()
    machine.boot()
    assert machine.converges() == 0
    assert machine.broken_files(machine.host) == ""
    assert machine.run("dpkg --audit") == ""
    assert machine.loaded() == machine.run("modinfo --field version nvidia")
    assert "iommu=pt" in machine.run("cat /proc/cmdline").split()
    assert "etc/modprobe.d/allreduce-nvidia.conf" in machine.run("lsinitramfs /initrd.img").split()
    found = machine.checked(machine.host, tmp_path, **machine.wanted)
    ours = ("driver_loaded", "dkms_module", "packages", "configuration_files")
    assert {name: found[name][0] for name in found if name in ours} == dict.fromkeys(set(ours) & set(found), "passed")
    assert {"driver_loaded", "dkms_module"} <= set(found)


def test_30_no_room_for_the_initramfs_is_said_and_made_up_for(machine):
    images = "stat --format '%n %Y %s' /boot/initrd.img-*"
    before = machine.run(images)
    machine.run(OWN_BOOT)
    more = {"nvidia_driver_module_parameters": {"NVreg_PreserveVideoMemoryAllocations": 0}}
    try:
        machine.run(FILL.format(place="/boot", left=2048))
        run = machine.site(**more)
        assert run.status == 2
        message = last_message(run)
        assert "update-initramfs -u -k all ended with 1" in message and "No space left on device" in message, message
        assert machine.run(images) == before
        machine.run("rm /boot/filler")
        assert machine.converges(**more) > 0
        assert machine.run(images) != before
        assert machine.converges(**more) == 0
    finally:
        machine.run("umount -l /boot", check=False)


def test_40_a_full_disk_is_refused_before_anything_is_changed(machine, tmp_path):
    machine.converges()
    machine.run("systemctl stop allreduce-health.timer")  # it writes what it finds
    before = machine.fingerprint(machine.host)
    machine.run(FILL.format(place="/var/lib", left=4096))
    try:
        run = machine.site(gpu_stack_request={**STACK, "driver": "580"}, stack_lock=str(tmp_path / "lock.yml"))
        assert run.status == 2
        assert re.search(r"\bfree\b", last_message(run)), last_message(run)
    finally:
        machine.run("rm /var/lib/filler")
    assert machine.fingerprint(machine.host) == before
    machine.run("systemctl start allreduce-health.timer")
    assert machine.converges() == 0
