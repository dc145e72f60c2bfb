# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine with a kernel of its own and a GPU on its bus, for which DKMS compiles a small module in the place of NVIDIA's."""

import json

from machine_hosts import Machines

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
# systemd takes nothing for a device that is not in sysfs itself: first the network gets its address.
ExecStartPre=/bin/sh -c 'until ip -4 -o address show scope global | grep -q .; do sleep 1; done'
ExecStart=/srv/machine/files/lab-machine pci
[Install]
WantedBy=multi-user.target
END
systemctl enable -q --now lab-pci.service
# What udev does for the device.
echo nvidia > /etc/modules-load.d/lab.conf
"""
# Debian's newer kernels of a small kind, oldest first, with headers and signed.
NEWER = """
apt-get -q update > /dev/null
names() { apt-cache search --names-only "^linux-$1-6\\.12\\..*-cloud-amd64\\$" | cut -d ' ' -f 1 | sed "s/linux-$1-//" | sort; }
names image > /root/images
names headers | comm -12 - /root/images | sort -V
"""


def request(driver):
    return {"gpu_stack_request": {"driver": driver, "driver_source": "nvidia"}}


class DriverMachine(Machines):
    """One machine with the GPUs of an `a40-pcie`."""

    def __init__(self, name, *options):
        super().__init__(name, 1, "--mirror", *options)
        self.host = self.hosts[0]
        self.send_hardware(self.host, "a40-pcie")
        self.run(SHOW_GPU)

    def run(self, command, check=True):
        return self.on(self.host, command, check).strip()

    def stack(self, tags="driver", driver="550", **variables):
        said = {**request(driver), **variables}
        return self.play("tests/scenarios/faults/stack.yml", "--tags", tags, "-e", json.dumps(said))

    def changes(self, **variables):
        """The number of changes of a run that succeeds."""
        run = self.stack(**variables)
        assert run.status == 0, run.output[-6000:]
        return run.recap[self.host]["changed"]

    def boot(self):
        """Reboot; return once users may log in."""
        self.boots(self.host, "systemctl reboot")

    def pending(self):
        """The reason of the reboot that is due, or nothing."""
        return json.loads(self.run("cat /var/lib/allreduce/reboot-pending 2>/dev/null || echo '{}'")).get("reason")

    def loaded(self):
        """The driver that the kernel has, as the collection measures it."""
        return self.measured(self.host, "node_state")["ansible_facts"]["gpu_node_state"]["driver"]["loaded"]

    def new_kernel(self, name, *parts):
        """Install a kernel as an administrator does, and boot it."""
        packages = " ".join(f"linux-{part}-{name}" for part in parts)
        self.run(f"DEBIAN_FRONTEND=noninteractive apt-get -y -q install --no-install-recommends {packages}")
        self.boot()
        assert self.run("uname -r") == name
