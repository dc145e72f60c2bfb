# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines with a kernel of their own as hosts of a scenario: they boot, and their power can be cut."""

import io
import json
import shutil
import subprocess
import tarfile
import time

from cluster import CHECKOUT, LAB, Cluster

from tests.lab import hardware, paths
from tests.lab.machines import guests, qemu

# Files of ours that are cut off, and those left of a write that did not end.
BROKEN = """
find /etc /var/lib/allreduce -xdev -type f -path '*allreduce*' -size 0 ! -name '*lock' -printf 'empty: %p\\n' 2>/dev/null
find /etc /var/lib/allreduce /opt/allreduce -xdev -maxdepth 3 \\( -name '*.part' -o -name '.ansible_tmp*' -o -name '*.tmp' \\) 2>/dev/null
for file in /var/lib/allreduce/*.json; do [ ! -e "$file" ] || python3 -m json.tool "$file" > /dev/null 2>&1 || echo "no JSON: $file"; done
"""


class Machines(Cluster):
    """N machines of one lab, which Ansible reaches like any other host; options are those of `python -m tests.lab machine up`."""

    def resize(self, nodes):
        """Have so many machines; those that are off boot."""
        self.hosts = [f"{self.name}-{i}" for i in range(1, nodes + 1)]
        argv = [*LAB, "machine", "up", self.name, "--nodes", str(nodes), "--inventory", str(self.path), *self.options]
        subprocess.run(argv, cwd=CHECKOUT, check=True)

    @property
    def path(self):
        return self.inventory / "hosts.yml"

    def down(self):
        """Remove the machines."""
        subprocess.run([*LAB, "machine", "down", self.name], cwd=CHECKOUT, check=True)

    def machine(self, host):
        return next(one for one in qemu.machines(self.name) if one.name == host)

    def on(self, host, command, check=True):
        """Run a shell command on a machine as root, over a new connection; its standard output."""
        done = self._ssh(host, command.encode(), "sh", "-s")
        if check and done.returncode:
            said = (done.stdout + done.stderr).decode(errors="replace")
            raise AssertionError(f"{host}: {command!r} ended with {done.returncode}: {said}")
        return done.stdout.decode(errors="replace")

    def send(self, host, archive, directory):
        """Unpack a tar.gz archive into a directory of a machine, which is made."""
        done = self._ssh(host, archive, "sh", "-c", f"'mkdir -p {directory} && tar -C {directory} -xz'")
        assert done.returncode == 0, done.stderr.decode(errors="replace")

    def _ssh(self, host, content, *words):
        known = self.path.with_name(".known_hosts")
        options = ("-o", f"UserKnownHostsFile={known}", "-o", "StrictHostKeyChecking=yes", "-o", "ConnectTimeout=60")
        login = ("-i", str(paths.SSH_KEY), *options, f"ansible@{self.machine(host).address}")
        return subprocess.run(["ssh", "-q", *login, "sudo", *words], input=content, capture_output=True, check=False)

    def send_hardware(self, host, machine):
        """Bring the files of a simulated machine (tests/lab/hardware) to where its scripts look for them."""
        root = hardware.record(self.name, f"{host}-hardware", machine)
        archive = subprocess.run(["tar", "-C", root, "-cz", "."], capture_output=True, check=True).stdout
        self.send(host, archive, hardware.MOUNT)
        shutil.rmtree(root)

    def checked(self, host, place, limit=None, **variables):
        """{check: (status, measured)} of one node, as playbook verify judges it without training; limit: the nodes that it looks at."""
        (place / "verify.json").unlink(missing_ok=True)
        given = {"report_directory": str(place), "verify_collectives": False, **variables}
        run = self.play("playbooks/verify.yml", "--limit", limit or host, "-e", json.dumps(given))
        assert (place / "verify.json").exists(), run.output[-6000:]
        document = json.loads((place / "verify.json").read_text(encoding="utf-8"))
        return {one["name"]: (one["status"], one["measured"]) for one in document["nodes"][host]["checks"]}

    def python(self, host, program):
        """Run a Python program on a machine that may import the collection's module_utils; what it prints."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            name = "ansible_collections/allreduce/gpu/plugins/module_utils"
            archive.add(
                CHECKOUT / "plugins" / "module_utils",
                name,
                filter=lambda one: None if "__pycache__" in one.name else one,
            )
        self.send(host, packed.getvalue(), "/tmp/collection")
        return self.on(host, f"cd /tmp/collection && PYTHONPATH=$PWD python3 - <<'END'\n{program}\nEND\n")

    def freeze(self, host):
        """Stop a machine where it is, as one that answers nobody any more; thaw lets it go on."""
        qemu.ask(self.machine(host), "stop")

    def thaw(self, host):
        qemu.ask(self.machine(host), "cont")

    def reboot(self, host):
        """Press the power button, switch the machine on again, and wait for SSH."""
        qemu.shut_down(self.machine(host))
        guests.start(self.machine(host))

    def boots(self, host, command, seconds=guests.BOOT_SECONDS):
        """Run a command that ends in a reboot, and wait for SSH after it."""
        boot = "cat /proc/sys/kernel/random/boot_id"
        before, end = self.on(host, boot), time.monotonic() + seconds
        self.on(host, command, check=False)
        while self.on(host, boot, check=False) in ("", before):
            assert time.monotonic() < end, f"{host} did not boot again"
            time.sleep(3)

    def broken_files(self, host):
        """Files of the collection that a power cut left behind half written; nothing if all are whole."""
        return self.on(host, BROKEN)

    def cut_power(self, host):
        qemu.cut_power(self.machine(host))

    def power_on(self, host):
        guests.start(self.machine(host))
