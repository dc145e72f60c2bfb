# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine whose kernel enforces SELinux, with Debian's reference policy: site, verify and train are denied nothing."""

import json

import pytest
from cluster import KEEP
from machine_hosts import Machines

pytestmark = pytest.mark.lab

# As selinux(8) of Debian tells it: the first boot labels all files, and boots again.
ACTIVATE = "selinux-activate && systemctl reboot"
LABEL_SECONDS = 1800
ENFORCE = "sed -i 's/^SELINUX=.*/SELINUX=enforcing/' /etc/selinux/config && systemctl reboot"
# Debian's needrestart looks at each process after apt; its policy does not have that capability yet. And where a unit without new privileges
# starts nft, that goes on in the unit's domain (docs/selinux.md).
HARMLESS = ("comm=needrestart", "{ nnp_transition }")
WANTED = {
    "gpu_stack_request": {
        "driver": "550",
        "driver_source": "nvidia",
        "pytorch": "2.13.0",
        "pytorch_index": "cpu",
        "horovod": "none",
    },
    "tuning_state": "present",
    "firewall_state": "present",
    "health_state": "present",
}


class Enforcing(Machines):
    """One machine without a GPU, on which the driver is installed, too."""

    def __init__(self):
        super().__init__("selinux", 1, "--mirror", "--memory", "4096")
        self.host = self.hosts[0]

    def run(self, command, check=True):
        return self.on(self.host, command, check).strip()

    def denied(self):
        """Denials since the boot to what Ansible or a training user began, and those of our files and programs, as auditd has them."""
        said = self.run("ausearch --input-logs --message avc --start boot --interpret 2>/dev/null || true")
        ours = [one for one in said.split("----") if "auid=unset" not in one or "allreduce" in one or "trainer" in one]
        return [one for one in ours if one.strip() and not any(word in one for word in HARMLESS)]

    def labels(self, *places):
        """What the policy would label otherwise below these directories."""
        return set(self.run(f"restorecon -n -v -R {' '.join(places)}", check=False).splitlines())

    def train(self):
        return self.play(
            "playbooks/train.yml",
            "-e",
            json.dumps(
                {
                    **WANTED,
                    "train_args": "--epochs 1 --samples 128 --batch-size 32 --width 4",
                    "train_start_timeout": 900,
                }
            ),
        )

    def site(self):
        """The number of changes of a run that succeeds."""
        run = self.play("playbooks/site.yml", "-e", json.dumps(WANTED))
        assert run.status == 0, run.output[-6000:]
        return run.recap[self.host]["changed"]


@pytest.fixture(scope="module")
def machine():
    made = Enforcing()
    yield made
    if not KEEP:
        made.down()


def test_10_it_boots_and_enforces(machine):
    machine.boots(machine.host, ACTIVATE, LABEL_SECONDS)
    machine.boots(machine.host, ENFORCE)
    assert machine.run("getenforce") == "Enforcing"


def test_20_site_is_denied_nothing_and_ends(machine):
    assert machine.site() > 0
    assert machine.site() == 0
    assert machine.denied() == []


def test_30_files_have_the_labels_of_the_policy(machine):
    others = {
        line
        for line in machine.labels("/etc", "/home", "/usr/local", "/var/lib", "/run")
        if "allreduce" in line or "trainer" in line
    }
    assert others == set()
    # A type that keeps nothing from running: docs/selinux.md.
    found = {line.split()[-1].split(":")[2] for line in machine.labels("/opt/allreduce")}
    assert found <= {"bin_t", "lib_t", "man_t"}, found


def test_40_pytorch_needs_a_boolean_which_verify_names(machine, tmp_path):
    """Debian's policy keeps memory that is writable and executable from all programs."""
    run = machine.train()
    assert run.status == 2 and "could not create a primitive" in run.output, run.output[-6000:]
    checks = machine.checked(machine.host, tmp_path, **WANTED)
    assert checks["selinux_booleans"] == ("failed", "allow_execmem off"), checks
    assert checks["selinux_denials"][0] == "failed"
    machine.run("setsebool -P allow_execmem on")


def test_50_after_a_boot_it_trains_and_verify_finds_nothing(machine, tmp_path):
    machine.boots(machine.host, "systemctl reboot")
    run = machine.train()
    assert run.status == 0, run.output[-6000:]
    assert machine.denied() == []
    checks = machine.checked(machine.host, tmp_path, **WANTED)
    assert {name: checks[name][0] for name in checks if name.startswith("selinux")} == {
        "selinux_mode": "passed", "selinux_booleans": "passed", "selinux_denials": "passed", "selinux_labels": "passed",
    }  # fmt: skip


def test_60_a_wrong_label_is_named(machine, tmp_path):
    """As files have it that were moved from a temporary directory: sshd may not read the keys of the training user."""
    machine.run("chcon -t user_tmp_t ~trainer/.ssh/authorized_keys")
    machine.run("runuser -u trainer -- ssh -o BatchMode=yes $(hostname) true", check=False)
    checks = machine.checked(machine.host, tmp_path, **WANTED)
    # Debian's policy denies it without a word in the log (dontaudit).
    assert checks["selinux_labels"] == ("failed", "user_tmp_t of /home/trainer/.ssh/authorized_keys"), checks
    machine.run("restorecon -R ~trainer/.ssh")
    machine.run("runuser -u trainer -- ssh -o BatchMode=yes $(hostname) true")
    assert machine.checked(machine.host, tmp_path, **WANTED)["selinux_labels"][0] == "passed"
