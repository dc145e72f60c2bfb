# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host for which things go wrong, and what is looked at then."""

import json
import os
import re
import signal
import time
from contextlib import contextmanager
from pathlib import Path

import yaml
from cluster import Cluster

from tests.lab.mirror import faults

HERE = Path(__file__).parent / "faults"
PLAY = str(HERE / "stack.yml")
QUICK_LOCKS = {"gpu_package_lock_timeout": 5}


class FaultHost(Cluster):
    """One replica host of DISTRIBUTION, which is installed from the lab's mirror."""

    def __init__(self, name, distribution, machine, request, *options):
        super().__init__(name, 1, "--distribution", distribution, "--machine", machine, *options)
        self.host, self.request = self.hosts[0], request
        self.manager = "dnf" if distribution.startswith(("rocky", "alma", "centos", "rhel")) else "apt"
        self.behave()

    def run(self, command, check=True):
        """A shell command on the host as root."""
        return self.on(self.host, command, check)

    def _options(self, tags, variables):
        said = json.dumps({"gpu_stack_request": self.request, **variables})
        return [*(["--tags", tags] if tags else []), "-e", said]

    def stack(self, tags="", **variables):
        """The play to its end; TAGS choose from its roles."""
        return self.play(PLAY, *self._options(tags, variables))

    def start_stack(self, tags="", **variables):
        """The play as a running process."""
        return self.start(PLAY, *self._options(tags, variables))

    def behave(self):
        """The mirror is a good one again."""
        faults.set_faults(self.name)

    @contextmanager
    def fault(self, *names):
        """The mirror misbehaves for a while."""
        faults.set_faults(self.name, *names)
        try:
            yield
        finally:
            self.behave()

    @contextmanager
    def full(self, place):
        """A directory on a disk of its own, which is full."""
        self.run(f"mkdir -p {place} && mount -t tmpfs -o size=8k,mode=755 tmpfs {place} && mkdir -p {place}/partial")
        self.run(f"head -c 8k /dev/zero > {place}/full", check=False)
        try:
            yield
        finally:
            self.run(f"umount {place}")

    def forget_driver(self):
        """As before the driver came."""
        self.run((HERE / f"forget_{self.manager}.sh").read_text(encoding="utf-8"), check=False)

    def forget_repository(self):
        """As before the repository was set up."""
        self.run(
            "rm -rf /etc/apt/sources.list.d/allreduce-* /etc/yum.repos.d/allreduce-* /var/cache/dnf /var/lib/apt/lists/*_compute_cuda_*"
        )

    def wait_for(self, command, seconds=120):
        """Until COMMAND prints something."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.run(command, check=False).strip():
                return
            time.sleep(0.3)
        raise AssertionError(f"{command} printed nothing within {seconds} s")

    def cut_the_power(self, process):
        """SIGKILL for the controller and for everything that works on the host's packages."""
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        # Ansible's module for dnf is a Python program itself. The brackets keep the pattern from matching this shell.
        works = "[p]ython3|[d]kms|[r]pm-tmp|[b]uild.sh|[a]pt-get|[d]pkg|[c]at /etc/lab"
        self.run(f"pkill -KILL -f '{works}'", check=False)

    def converges(self, **variables):
        """The whole play succeeds, the driver's module is built, and the package manager has nothing left to do."""
        run = self.stack(**variables)
        assert run.status == 0, run.output[-6000:]
        self.is_sound()
        assert self.built() == [self.driver()]
        return run

    def is_sound(self):
        """The package manager has no unfinished work."""
        if self.manager == "apt":
            assert self.run("dpkg --audit; apt-get -s check > /dev/null || echo broken") == ""
        else:
            assert (
                self.run("rpm -Va --nofiles --nodigest; rpm -qa --qf '%{NAME}\\n' | grep nvidia | sort | uniq -d") == ""
            )

    def built(self):
        """Versions for which DKMS has built and installed the module."""
        return re.findall(r"(?m)^nvidia[\w-]*/([\d.]+),.*: installed", self.run("dkms status"))

    def driver(self):
        """The installed driver's version, from its library."""
        found = self.run(
            "readlink -f /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 /usr/lib64/libnvidia-ml.so.1", check=False
        )
        return next(iter(re.findall(r"libnvidia-ml\.so\.(\d[\d.]+)", found)), None)


def stopped(run, *words):
    """The run failed, and its last message is one sentence with these words."""
    assert run.status == 2, run.output[-6000:]
    message = last_message(run)
    for word in words:
        assert word in message, message + "\n----\n" + run.output[-6000:]
    for mess in ("Traceback", "E:", "{'", "/usr/bin/apt-get"):
        assert mess not in message, message
    return message


def last_message(run):
    """msg of the last failure, its lines joined."""
    last = run.output.split("fatal: ")[-1].partition("PLAY RECAP")[0].partition("TASK [")[0].partition("=>")[2]
    lines = [line for line in last.splitlines() if line.startswith(" ") or not line]
    return re.sub(r"\s+", " ", str(yaml.safe_load("\n".join(lines))["msg"])).strip()
