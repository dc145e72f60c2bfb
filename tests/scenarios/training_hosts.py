# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two hosts on which the training user can train: an environment and keys, and nothing of the driver."""

import json
import time

from cluster import Cluster

from tests.lab import podman

RUNS = "/var/lib/allreduce/runs"


class TrainingHosts(Cluster):
    """Two hosts with an environment and keys, and nothing of the driver."""

    def __init__(self):
        super().__init__("launch", 2)
        run = self.play("playbooks/site.yml", "--tags", "base,python_env,frameworks,cluster_ssh")
        assert run.status == 0, run.output[-6000:]

    def is_empty(self, seconds=15):
        """No process of the training user is left after at most SECONDS."""
        deadline = time.monotonic() + seconds
        while any(self.on(host, "pgrep -u trainer -c . || true").strip() != "0" for host in self.hosts):
            assert time.monotonic() < deadline, {
                host: self.on(host, "ps -u trainer -o pid,args || true") for host in self.hosts
            }
            time.sleep(1)


class Launched(TrainingHosts):
    """The hosts, and playbook train on them."""

    def train(self, launcher, *options, **variables):
        """Playbook train as a running process; nothing is left of former runs."""
        for host in self.hosts:
            self.on(host, f"rm -rf {RUNS}")
        more = {"train_launcher": launcher, "train_lease": 20, **variables}
        return self.start("playbooks/train.yml", "-e", json.dumps(more), *options)

    def trained(self, launcher, *options, **variables):
        """Exit status, output with its white space folded, and result of a run to its end."""
        return self.ended(self.train(launcher, *options, **variables))

    def ended(self, process):
        output = process.communicate(timeout=420)[0]
        return process.returncode, " ".join(output.split()), self.newest()

    def newest(self):
        found = (self.inventory / ".reports" / "training").glob("*/result.json")
        results = [json.loads(path.read_text(encoding="utf-8")) for path in found]
        return max(results, key=lambda result: result["finished"], default=None)

    def logs(self, result, name):
        """The text of a log of each host."""
        place = self.inventory / ".reports" / "training" / result["run_id"] / "logs"
        return {
            host: (place / host / name).read_text(encoding="utf-8")
            for host in self.hosts
            if (place / host / name).exists()
        }

    def wait_for(self, process, host, command, seconds=150):
        """Wait until a command prints something."""
        deadline = time.monotonic() + seconds
        while not self.on(host, command, check=False).strip():
            assert process.poll() is None, process.communicate()[0][-4000:]
            assert time.monotonic() < deadline, f"{command} printed nothing on {host}"
            time.sleep(1)

    def half_way(self, process, seconds=180):
        """Wait until the run, the only one of which anything is left, is in its third epoch, with a checkpoint on both hosts."""
        deadline = time.monotonic() + seconds
        said = f"ls {RUNS}/*/work/checkpoints/checkpoint.pt; cat {RUNS}/*/logs/rank0.out"
        while time.monotonic() < deadline:
            seen = [self.on(host, f"({said}) 2>/dev/null", check=False) for host in self.hosts]
            if all("checkpoint.pt" in one for one in seen) and "epoch 2/" in "".join(seen):
                return
            assert process.poll() is None, process.communicate()[0][-4000:]
            time.sleep(1)
        raise AssertionError(seen)

    def kill(self, host):
        """Take a host away at once, as a power cut does."""
        podman.podman("kill", "--signal", "KILL", host)
