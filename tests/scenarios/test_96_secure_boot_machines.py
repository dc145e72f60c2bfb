# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secure Boot on a machine with UEFI firmware, Debian's shim and a kernel that refuses modules; the console is typed at.

Everything but the GPU and what the driver's module does is real: DKMS compiles and signs, mokutil asks, MokManager enrols, the kernel loads.
"""

import pytest
from cluster import KEEP
from driver_machine import NEWER, DriverMachine
from fault_host import last_message

from tests.lab.machines import console, guests

pytestmark = pytest.mark.lab

PASSWORD = "correct horse"
CERTIFICATE = "/var/lib/dkms/mok.pub"
ENROL = {"nvidia_driver_signing_key_password": PASSWORD}
REASON = "cannot load until its signing key is enrolled at the console at the next boot: reboot and choose Enroll MOK"
LOGIND = "systemd-logind dbus-org.freedesktop.login1.service"
# What udev asks kmod for when it sees an A40, and takes nouveau for an answer.
NOUVEAU = "modprobe --use-blacklist --dry-run --verbose pci:v000010DEd00002235sv000010DEsd0000145Abc03sc02i00 2>&1 | grep -c nouveau || true"
# The module of the machine, without its signature and with one of a key that nobody enrolled.
TAMPER = """
cd /root
cp $(modinfo --field filename nvidia) unsigned.ko
strip --strip-debug unsigned.ko
openssl req -new -x509 -nodes -subj /CN=nobody -newkey rsa:2048 -keyout other.key -outform DER -out other.der 2> /dev/null
cp unsigned.ko other.ko
/usr/lib/linux-kbuild-*/scripts/sign-file sha256 other.key other.der other.ko
"""


class SecureBoot(DriverMachine):
    """One machine with a GPU, and somebody at its console."""

    def __init__(self):
        super().__init__("secureboot", "--secure-boot")

    def boot(self, at_console=lambda _screen: None):
        """Reboot with somebody at the console; return once users may log in."""
        with console.Console(self.machine(self.host)) as screen:
            self.run("systemctl reboot", check=False)
            at_console(screen)
            screen.wait_for("login:")
        guests.start(self.machine(self.host))

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


def test_22_a_boot_at_which_nobody_answers_drops_the_request_and_the_next_run_asks_again(machine):
    machine.boot()
    assert machine.secure_boot() == (True, "unknown")
    assert machine.changes(**ENROL) > 0
    assert machine.secure_boot() == (True, "pending")
    assert REASON in machine.pending()


def test_30_after_the_console_the_signed_module_is_loaded_and_no_other(machine):
    machine.boot(lambda screen: console.enrol(screen, PASSWORD))
    assert machine.secure_boot() == (True, "enrolled")
    assert machine.loaded() == machine.run("modinfo --field version nvidia")
    machine.changes()
    assert machine.pending() is None
    assert machine.changes() == 0
    machine.run(TAMPER)
    machine.run("modprobe --remove nvidia")
    for name in ("unsigned", "other"):
        said = machine.run(f"insmod /root/{name}.ko 2>&1 || true")
        assert "could not insert module" in said and "rejected" in said, said
    assert machine.loaded() is None
    assert machine.changes() > 0
    assert machine.loaded() == machine.run("modinfo --field version nvidia")


def test_40_a_new_version_is_loaded_after_the_roles_own_reboot_without_the_console(machine):
    """On a machine whose logind does not answer, which shutdown would need."""
    old, boot = machine.loaded(), machine.run("cat /proc/sys/kernel/random/boot_id")
    machine.run(f"systemctl mask --now {LOGIND}")
    run = machine.stack(driver="580", nvidia_driver_reboot_allowed=True)
    assert run.status == 0, run.output[-6000:]
    assert machine.run("cat /proc/sys/kernel/random/boot_id") != boot
    assert machine.loaded() == machine.run("modinfo --field version nvidia") != old
    assert machine.secure_boot() == (True, "enrolled")
    assert machine.pending() is None
    machine.run(f"systemctl unmask {LOGIND}")
    assert machine.changes(driver="580") == 0


def test_50_a_new_kernel_that_came_with_its_headers_boots_with_the_driver(machine):
    kernel = machine.run(NEWER).split()[0]
    machine.new_kernel(kernel, "image", "headers")
    assert machine.loaded() == machine.run("modinfo --field version nvidia")
    assert machine.run("modinfo --field signer nvidia") == "DKMS module signing key"
    assert machine.pending() is None
    assert machine.changes(driver="580") == 0
