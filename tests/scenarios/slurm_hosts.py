# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm on hosts of the lab: a controller and nodes with simulated GPUs, and what Slurm and verify say of them."""

import json
import subprocess
import time

from cluster import CHECKOUT, LAB, Cluster

PLAYBOOK = "tests/scenarios/slurm.yml"
# The driver's packages are not what is tested: a library of this name is what they would bring.
DRIVER = "touch /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.54.15; sh /srv/machine/files/lab-machine load"
DEVICES = "for one in 0 1 2 3; do test -e /dev/nvidia$one || mknod -m 666 /dev/nvidia$one c 195 $one; done"
OFF = {
    "gpu_stack_request": {"pytorch": "2.13.0", "pytorch_index": "cpu"}, "nvidia_driver_without_gpu": False, "slurm_state": "absent",
}  # fmt: skip
ON = {**OFF, "slurm_state": "present", "slurm_cgroups": False}
# A sandbox of systemd has a /proc of its own, which lacks what the lab puts there.
HEALTH = {
    "health_state": "present", "health_hook": "/opt/allreduce/lib/slurm/check", "health_hook_mode": "act",
    "health_textfile_directory": "", "health_skip_checks": ["module_loaded"], "health_hook_per_day": 50, "health_hook_per_week": 50,
}  # fmt: skip
FAULT, REASON, IDLE = "1 ecc_errors.1.0 2", "allreduce: ecc_errors GPU1: reset", ("idle", "none")


class Queue:
    """A controller, nodes, and perhaps hosts that users log in to; the nodes have four simulated GPUs each, with device files."""

    def __init__(self, distribution, name="queue", nodes=2, login=0):
        wheels = "demo" if distribution == "debian12" else "uv"
        options = ("--distribution", distribution, "--machine", "a100-nvlink", "--wheels", wheels)
        self.cluster = Cluster(f"{name}{distribution[-2:]}", 1 + nodes + login, *options)
        self.hosts = self.cluster.hosts
        self.controller, self.nodes, self.login = self.hosts[0], self.hosts[1 : 1 + nodes], self.hosts[1 + nodes :]
        for node in self.nodes:
            self.on(node, f"{DRIVER}; {DEVICES}")
        place = self.cluster.inventory.with_name(f"{self.cluster.name}-by-one")
        self.inventory = self.cluster.edit_inventory(place, self._with_controller)

    def _with_controller(self, content):
        hosts = content["gpu_nodes"]["hosts"]
        for group, names in (("controllers", [self.controller]), ("login_nodes", self.login)):
            content[group] = {"hosts": {name: hosts.pop(name) for name in names}, "vars": content["gpu_nodes"]["vars"]}

    def on(self, host, command, check=True):
        return self.cluster.on(host, command, check)

    def start(self, host, command):
        """A shell command on a host that goes on while others run."""
        return subprocess.Popen([*LAB, "exec", host, "--", "sh", "-c", command], cwd=CHECKOUT)

    def play(self, variables, *options, playbook=PLAYBOOK):
        """{host: number of changes} of a run that succeeds, and its output."""
        run = self.cluster.play(playbook, "-e", json.dumps(variables), *options, inventory=self.inventory)
        assert run.status == 0, run.output[-6000:]
        return {host: run.recap[host]["changed"] for host in self.hosts if host in run.recap}, run.output

    def run(self, command):
        """What a command on the controller prints, within a minute."""
        return self.on(self.controller, f"timeout 60 {command}").strip()

    def until(self, command, expected, seconds=60):
        """Wait until a command on the controller prints this."""
        end = time.monotonic() + seconds
        while (said := self.run(command)) != expected:
            assert time.monotonic() < end, f"{command}: {said}"
            time.sleep(1)

    def say(self, node, *lines):
        """Let the node's NVML answer otherwise."""
        said = [*(f"{gpu} persistence_mode 1" for gpu in range(4)), *lines]
        self.on(node, f"printf '%s\\n' {' '.join(map(repr, said))} > /etc/simulated-nvml/profile.state")

    def judge(self, node, *lines):
        """Let the node's NVML answer otherwise, and judge its health at once, as the timer would within a minute."""
        self.say(node, *lines)
        self.on(node, "systemctl start allreduce-health", check=False)

    def states(self):
        """{node: (state, reason)} as Slurm has them."""
        said = self.run("sinfo --Node --noheader --format='%N|%T|%E'")
        return {name: (state, reason) for name, state, reason in (line.split("|", 2) for line in said.splitlines())}

    def until_state(self, node, *expected, seconds=100):
        """Wait until Slurm has a node in this state, for this reason."""
        end = time.monotonic() + seconds
        while (found := self.states()[node]) != expected:
            assert time.monotonic() < end, (
                found,
                self.on(node, "journalctl -t allreduce-slurm-check -n 20", check=False),
            )
            time.sleep(1)

    def checks(self, place, node, variables=None, **asked):
        """{name: (status, why and what to do)} of verify's checks about Slurm on a node."""
        more = {"report_directory": str(place), "verify_collectives": False, "verify_peers": [], **asked}
        options = ("-e", json.dumps({**(variables or ON), **more}))
        run = self.cluster.play("playbooks/verify.yml", *options, inventory=self.inventory)
        assert (place / "verify.json").exists(), run.output[-6000:]
        document = json.loads((place / "verify.json").read_text(encoding="utf-8"))
        found = document["nodes"][node]["checks"]
        return {
            one["name"]: (one["status"], "; ".join(filter(None, (one["reason"], one["fix"]))))
            for one in found
            if one["name"].startswith("slurm_")
        }
