# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secure Boot: DKMS really signs, mokutil really asks to enrol; firmware, console and the kernel's refusal are stand-ins."""

import json

import pytest
from cluster import KEEP
from fault_host import FaultHost, stopped

from tests.lab import firmware

pytestmark = pytest.mark.lab

PASSWORD = "correct horse"
CERTIFICATE = "/var/lib/dkms/mok.pub"
WANTED = {"driver": "550", "driver_source": "nvidia"}
ENROL = {"nvidia_driver_signing_key_password": PASSWORD}
REASON = "cannot load until its signing key is enrolled at the console at the next boot: reboot and choose Enroll MOK"


@pytest.fixture(scope="module")
def host():
    """A host with a GPU, all but the driver, and Secure Boot."""
    made = FaultHost("secure-boot", "debian12", "a40-pcie", WANTED, "--mirror")
    firmware.install(made.host)
    yield made
    if not KEEP:
        made.down()


def signer(host):
    return host.run("modinfo -F signer $(find /lib/modules/ -name nvidia.ko | tail -1)").strip()


def pending(host):
    """The reason of the reboot that is due."""
    return json.loads(host.run("cat /var/lib/allreduce/reboot-pending")).get("reason")


def test_10_a_host_without_a_console_is_refused_before_anything_is_compiled(host):
    assert host.stack("base,repository").status == 0
    run = host.stack("driver", nvidia_driver_console=False, **ENROL)
    stopped(run, "Secure Boot is on", host.host, "nvidia_driver_console", "driver_source: distribution")
    assert (host.run("ls /var/lib/dkms /usr/src | grep -c nvidia", check=False).strip(), host.driver()) == ("0", None)


def test_11_without_a_password_it_says_what_to_set(host):
    stopped(host.stack("driver"), CERTIFICATE, "set nvidia_driver_signing_key_password", "Enroll MOK")
    assert (host.driver(), host.run(f"ls {CERTIFICATE} 2>/dev/null", check=False)) == (None, "")


def test_12_a_firmware_that_takes_nothing_is_told_before_anything_is_compiled(host):
    host.run("mount -o remount,bind,ro /sys/firmware/efi")
    try:
        run = host.stack("driver", **ENROL)
    finally:
        host.run("mount -o remount,bind,rw /sys/firmware/efi")
    stopped(run, CERTIFICATE, "mokutil --import ended with", "Failed to enroll new keys", "nvidia_driver_console")
    assert (PASSWORD in run.output, host.driver()) == (False, None)


def test_20_the_module_is_signed_and_the_key_awaits_the_console(host):
    run = host.play("tests/scenarios/faults/stack.yml", "-vvv", "--diff", *host._options("driver", ENROL))
    assert run.status == 0, run.output[-6000:]
    assert host.built() == [host.driver()]
    assert signer(host) == "DKMS module signing key"
    assert pending(host) == f"driver {host.driver()} {REASON}"
    assert host.run("stat -c '%a %U' /var/lib/dkms/mok.key").strip() == "600 root"
    refused = host.run("modprobe nvidia 2>&1 || true")
    assert "Key was rejected by service" in refused
    assert PASSWORD not in run.output


def test_21_the_password_and_the_private_key_are_in_no_log(host):
    journal = host.run("journalctl --no-pager -o cat; cat /var/log/auth.log 2>/dev/null", check=False)
    assert "COMMAND" in journal, "sudo logs nothing here"
    assert (PASSWORD in journal, "PRIVATE KEY" in journal) == (False, False)
    assert host.run(f"grep -rlF '{PASSWORD}' /var/lib/allreduce /home /root /tmp 2>/dev/null", check=False) == ""


def test_22_while_it_awaits_nothing_changes_and_nothing_fails(host):
    run = host.stack("driver", **ENROL, nvidia_driver_reboot_allowed=True)
    assert run.status == 0, run.output[-6000:]
    assert run.recap[host.host]["changed"] == 0, run.output[-6000:]


def test_30_after_the_console_the_driver_is_loaded(host):
    assert "Password doesn't match" in host.run("lab-firmware console wrong 2>&1 || true")
    host.run(f"lab-firmware console '{PASSWORD}'")
    host.run("modprobe nvidia")
    run = host.stack("driver")
    assert run.status == 0, run.output[-6000:]
    assert host.run("ls /var/lib/allreduce/reboot-pending 2>/dev/null", check=False) == ""


def test_31_the_second_run_changes_nothing(host):
    run = host.stack("driver")
    assert run.status == 0, run.output[-6000:]
    assert run.recap[host.host]["changed"] == 0, run.output[-6000:]


def test_32_a_new_version_is_signed_with_the_same_key(host):
    """Nobody has to go to the console for an upgrade."""
    host.run("rm -f /srv/machine/proc/driver/nvidia/version")  # as after a boot without the driver
    run = host.stack("repository,driver", gpu_stack_request={**WANTED, "driver": "580", "kernel_modules": "open"})
    assert run.status == 0, run.output[-6000:]
    assert host.driver().startswith("580.")
    assert signer(host) == "DKMS module signing key"
    assert host.run("mokutil --list-new").strip() == ""
