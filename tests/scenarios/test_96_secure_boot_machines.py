# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secure Boot on a machine with UEFI firmware, Debian's shim and a kernel that refuses modules.

Everything but the GPU and what the driver's module does is real: DKMS compiles and signs, mokutil asks, the kernel refuses.
"""

import json

import pytest
from cluster import KEEP
from fault_host import last_message
from machine_hosts import Machines

pytestmark = pytest.mark.lab

PASSWORD = "correct horse"
CERTIFICATE = "/var/lib/dkms/mok.pub"
ENROL = {"nvidia_driver_signing_key_password": PASSWORD}
REASON = "cannot load until its signing key is enrolled at the console at the next boot: reboot and choose Enroll MOK"
# The GPU on the PCI bus. Role base is left out, as compilers are slow to install there: its directory, and what the image has.
SHOW_GPU = """
install -d /var/lib/allreduce
ln -sfn /srv/machine /etc/simulated-nvml
cat > /etc/systemd/system/lab-pci.service <<'END'
[Unit]
Before=ssh.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/srv/machine/files/lab-machine pci
[Install]
WantedBy=multi-user.target
END
systemctl enable -q --now lab-pci.service
# What udev does for the device.
echo nvidia > /etc/modules-load.d/lab.conf
"""
# What udev asks kmod for when it sees an A40, and takes nouveau for an answer.
NOUVEAU = "modprobe --use-blacklist --dry-run --verbose pci:v000010DEd00002235sv000010DEsd0000145Abc03sc02i00 2>&1 | grep -c nouveau || true"


class SecureBoot(Machines):
    """One machine with a GPU, and somebody at its console."""

    def __init__(self):
        super().__init__("secureboot", 1, "--secure-boot", "--mirror")
        self.host = self.hosts[0]
        self.send_hardware(self.host, "a40-pcie")
        self.run(SHOW_GPU)

    def run(self, command, check=True):
        return self.on(self.host, command, check).strip()

    def stack(self, tags="driver", driver="550", **variables):
        said = {"gpu_stack_request": {"driver": driver, "driver_source": "nvidia"}, **variables}
        return self.play("tests/scenarios/faults/stack.yml", "--tags", tags, "-e", json.dumps(said))

    def changes(self, **variables):
        """The number of changes of a run that succeeds."""
        run = self.stack(**variables)
        assert run.status == 0, run.output[-6000:]
        return run.recap[self.host]["changed"]

    def pending(self):
        """The reason of the reboot that is due, or nothing."""
        return json.loads(self.run("cat /var/lib/allreduce/reboot-pending 2>/dev/null || echo '{}'")).get("reason")

    def loaded(self):
        """The driver that the kernel has, as the collection measures it."""
        return self.measured(self.host, "node_state")["ansible_facts"]["gpu_node_state"]["driver"]["loaded"]

    def secure_boot(self):
        """(Whether signatures are demanded, the state of the signing key), as the collection measures them."""
        seen = self.measured(self.host, "node_state")["ansible_facts"]["gpu_node_state"]["secure_boot"]
        return seen["enforced"], seen["key"]


@pytest.fixture(scope="module")
def machine():
    made = SecureBoot()
    yield made
    if not KEEP:
        made.down()


def test_10_without_a_password_it_says_what_to_set(machine):
    assert machine.secure_boot() == (True, None)
    assert machine.run(NOUVEAU) != "0"
    run = machine.stack("repository,driver")
    assert run.status == 2
    message = last_message(run)
    assert CERTIFICATE in message and "set nvidia_driver_signing_key_password" in message, message


def test_20_the_module_is_compiled_and_signed_and_the_kernel_refuses_it(machine):
    before = machine.run("stat -c %Y /boot/initrd.img-$(uname -r)")
    assert machine.changes(**ENROL) > 0
    assert machine.secure_boot() == (True, "pending")
    assert machine.run("modinfo --field signer nvidia") == "DKMS module signing key"
    assert machine.run("modinfo --field vermagic nvidia").split()[0] == machine.run("uname -r")
    said = machine.run("modprobe nvidia 2>&1 || true")
    assert "could not insert 'nvidia'" in said and "rejected" in said, said
    assert machine.loaded() is None
    version = machine.run("modinfo --field version nvidia")
    assert machine.pending() == f"driver {version} {REASON}"
    assert machine.run(NOUVEAU) == "0"
    assert machine.run("stat -c %Y /boot/initrd.img-$(uname -r)") > before
    assert "etc/modprobe.d/allreduce-nouveau.conf" in machine.run("lsinitramfs /boot/initrd.img-$(uname -r)")


def test_21_while_it_awaits_the_console_nothing_changes_and_nobody_reboots_it(machine):
    boot = machine.run("cat /proc/sys/kernel/random/boot_id")
    assert machine.changes(**ENROL, nvidia_driver_reboot_allowed=True) == 0
    assert machine.run("cat /proc/sys/kernel/random/boot_id") == boot
