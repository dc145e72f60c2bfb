# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a playbook, or the floor, and say what it cost."""

import json
import os
import re
import resource
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.lab import paths

CHECKOUT = Path(__file__).resolve().parents[2]


def inventory_of(lab):
    """Directory of a lab's inventory that holds nothing else: Ansible parses every file below one, in a host's machine too."""
    return paths.LAB / "inventories" / lab


@dataclass
class Cost:
    """What one run cost: seconds of wall clock and of controller CPU; executions {host: Counter(role)}; actions: all of them;
    tasks: how many tasks and handlers began.
    """

    wall: float
    cpu: float
    executions: dict = field(default_factory=dict)
    changed: dict = field(default_factory=dict)
    actions: list = field(default_factory=list)
    tasks: int = 0

    def per_host(self):
        """Remote module executions of the host that had most."""
        return max((sum(roles.values()) for roles in self.executions.values()), default=0)


def playbook(name, inventory, *options, record=False, variables=None):
    """Cost of `ansible-playbook playbooks/NAME.yml`; RuntimeError when it fails.

    ``record``: actions say what modules were told. ``variables``: more for its environment.
    """
    with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as log:
        environment = {
            **os.environ,
            "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg"),
            "ANSIBLE_CALLBACK_PLUGINS": str(Path(__file__).parent / "callback_plugins"),
            "ANSIBLE_CALLBACKS_ENABLED": "executions",
            "ALLREDUCE_EXECUTIONS": log.name,
            "ANSIBLE_NOCOLOR": "1",
            **({"ALLREDUCE_RECORD": "1"} if record else {}),
            **(variables or {}),
        }
        argv = ["ansible-playbook", str(CHECKOUT / "playbooks" / f"{name}.yml"), "-i", str(inventory), *options]
        done, wall, cpu = timed(argv, env=environment, cwd=CHECKOUT)
        if done.returncode:
            raise RuntimeError(f"{name}.yml failed:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
        actions = [json.loads(line) for line in log.read().splitlines()]
    executions = {}
    for row in actions:
        executions.setdefault(row["host"], Counter())[row["role"] or name] += 1
    changed = {host: int(count) for host, count in re.findall(r"^(\S+)\s+: .*changed=(\d+)", done.stdout, re.M)}
    return Cost(wall, cpu, executions, changed, actions, started(done.stdout))


def started(output):
    """How many tasks and handlers began, of what ansible-playbook prints."""
    return len(re.findall(r"^(?:TASK|RUNNING HANDLER) \[", output, re.M))


def gathering(inventory, repeats=3):
    """What the facts of the same hosts cost, by Ansible itself: `ansible -m setup`."""
    environment = {**os.environ, "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg")}
    argv = ["ansible", "gpu_nodes", "-m", "ansible.builtin.setup", "-i", str(inventory)]
    runs = [timed(argv, env=environment, cwd=CHECKOUT) for repeat in range(repeats)]
    if any(done.returncode for done, _wall, _cpu in runs):
        raise RuntimeError(f"setup failed:\n{runs[-1][0].stdout[-2000:]}")
    return Cost(statistics.median(r[1] for r in runs), statistics.median(r[2] for r in runs))


def floor(inventory, repeats=5):
    """The least any tool could do: one SSH round trip per host at once, asking for one package."""
    groups = yaml.safe_load(Path(inventory).read_text(encoding="utf-8"))["gpu_nodes"]
    common = groups["vars"]
    processes = [
        f"ssh -i {common['ansible_ssh_private_key_file']} {common['ansible_ssh_common_args']} -o BatchMode=yes"
        f" {common['ansible_user']}@{host['ansible_host']} dpkg-query --show openssh-server >/dev/null &"
        for host in groups["hosts"].values()
    ]
    script = "\n".join([*processes, "wait"])
    runs = [timed(["sh", "-c", script]) for repeat in range(repeats)]
    return Cost(statistics.median(r[1] for r in runs), statistics.median(r[2] for r in runs))


def timed(argv, **options):
    """(CompletedProcess, wall seconds, CPU seconds of it and its children)."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    done = subprocess.run(argv, capture_output=True, text=True, check=False, **options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done, time.monotonic() - began, cpu
