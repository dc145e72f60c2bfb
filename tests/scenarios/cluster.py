# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lab hosts, and the commands a user types against them."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.lab import demo

CHECKOUT = Path(__file__).resolve().parents[2]
KEEP = os.environ.get("ALLREDUCE_KEEP")  # leave the hosts for a look, and take them again
CORE_216 = CHECKOUT / ".nox" / "core_216" / "bin"  # the last ansible-core for EL8; noxfile.py makes it
LAB = [sys.executable, "-m", "tests.lab"]
# A host that nothing reaches any more, and that reaches nothing.
CUT = """
nft add table inet cut
for hook in input output; do
  nft add chain inet cut $hook "{ type filter hook $hook priority -300; policy drop; }"
  nft add rule inet cut $hook meta $([ $hook = input ] && echo iif || echo oif) lo accept
done
"""


@dataclass
class Run:
    """One finished command: exit status and what it printed, colours and line folding undone."""

    status: int
    output: str

    @property
    def words(self):
        """The output with all white space folded, so that a sentence can be looked for."""
        return re.sub(r"\s+", " ", self.output)

    @property
    def recap(self):
        """{host: {ok: n, changed: n, …}} of the last recap."""
        found = {}
        for host, counts in re.findall(r"^(\S+)\s+: (ok=.*)$", self.output, re.M):
            found[host] = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", counts)}
        return found


class Cluster:
    """N hosts of one lab, with an inventory directory of their own; options are those of `python -m tests.lab up`."""

    def __init__(self, name, nodes, *options):
        self.name = name
        self.options = options
        self.programs = CHECKOUT / ".venv" / "bin"
        self.inventory = CHECKOUT / "tests" / "output" / name
        if KEEP and (self.inventory / "hosts.yml").exists():
            self.resize(nodes)
            return
        shutil.rmtree(self.inventory, ignore_errors=True)
        demo.copy_settings(self.inventory)
        self.down()  # what an interrupted run left
        self.resize(nodes)

    def resize(self, nodes):
        """Have so many hosts: those missing come up bare, those beyond go."""
        self.hosts = [f"{self.name}-{i}" for i in range(1, nodes + 1)]
        path = self.inventory / "hosts.yml"
        argv = [*LAB, "up", "--name", self.name, "--nodes", str(nodes), "--inventory", str(path), *self.options]
        subprocess.run(argv, cwd=CHECKOUT, check=True)

    def down(self):
        """Remove the hosts."""
        subprocess.run([*LAB, "down", "--name", self.name], cwd=CHECKOUT, check=True)

    def address(self, host):
        known = yaml.safe_load((self.inventory / "hosts.yml").read_text(encoding="utf-8"))
        return known["gpu_nodes"]["hosts"][host]["ansible_host"]

    def on(self, host, command, check=True):
        """Run a shell command on a host as root; its standard output."""
        argv = [*LAB, "exec", host, "--", "sh", "-c", command]
        done = subprocess.run(argv, cwd=CHECKOUT, capture_output=True, text=True, check=False)
        if check and done.returncode:
            raise AssertionError(f"{host}: {command!r} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def cut_off(self, host):
        """Let nothing reach a host over the network, which has nftables; commands of the lab go another way."""
        self.on(host, CUT)

    def reconnect(self, host):
        self.on(host, "nft delete table inet cut", check=False)

    def start(self, playbook, *options, inventory=None, cwd=CHECKOUT, config=CHECKOUT / "ansible.cfg"):
        """ansible-playbook as a running process, in a process group of its own."""
        argv = ["ansible-playbook", playbook, "-i", str(inventory or self.inventory), *options]
        return subprocess.Popen(
            argv, cwd=cwd, env=environment(config, self.programs), text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def play(self, playbook, *options, **where):
        """ansible-playbook to its end."""
        process = self.start(playbook, *options, **where)
        output = process.communicate()[0]
        return Run(process.returncode, output)

    def measured(self, host, module):
        """What a measuring module of the collection answers on a host."""
        argv = ["ansible", host, "-i", str(self.inventory), "--become", "--one-line", "-m", f"allreduce.gpu.{module}"]
        env = environment(CHECKOUT / "ansible.cfg", self.programs)
        done = subprocess.run(argv, cwd=CHECKOUT, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout[done.stdout.index("{") :])

    def fingerprint(self, host):
        """What a run that must touch nothing leaves alone: files of the system, packages, users, units."""
        return self.on(
            host,
            "find /etc /opt /usr /home /root /boot /var/lib/dpkg /var/lib/allreduce -xdev -not -type d"
            " -not -path '/var/lib/dpkg/lock*' -not -path '/home/ansible/.ansible*' -not -name '*.pyc'"
            r" -printf '%p %s %T@\n' 2>/dev/null | LC_ALL=C sort | md5sum",
        )

    def fingerprints(self):
        """The fingerprint of every host."""
        return {host: self.fingerprint(host) for host in self.hosts}

    def edit_inventory(self, target, change):
        """A copy of the inventory in directory TARGET, its hosts.yml passed through CHANGE."""
        shutil.copytree(self.inventory, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".reports"))
        path = Path(target) / "hosts.yml"
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        changed = change(content) or content
        path.write_text(yaml.safe_dump(changed), encoding="utf-8")
        return Path(target)


def environment(config, programs=CHECKOUT / ".venv" / "bin"):
    """The environment a user's shell has: Ansible's programs first, one configuration file, no colours."""
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")},
        "PATH": f"{programs}:{os.environ['PATH']}",
        "ANSIBLE_CONFIG": str(config),
        "ANSIBLE_NOCOLOR": "1",
        "COLUMNS": "200",
        "PYTHONUNBUFFERED": "1",
    }
