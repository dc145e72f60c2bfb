# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ansible-playbook as a user runs it, with no host in reach."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

CHECKOUT = Path(__file__).resolve().parents[2]


class Played:
    """One run: its directory and status, what it printed, the lock it left, and whether it tried to reach a host."""

    def __init__(self, directory, status, output):
        self.directory, self.status, self.output = directory, status, output
        self.words = re.sub(r"\s+", " ", output)
        path = directory / "inventory" / "stack.lock.yml"
        self.lock = path.read_text(encoding="utf-8") if path.exists() else None
        self.contacted = (directory / "contacted").exists()

    @property
    def lines(self):
        """Without the recap, whose width Ansible chooses."""
        return self.output.partition("PLAY RECAP")[0].splitlines()


def play(
    directory, playbook, *options, collections=CHECKOUT / ".collections", ssh="echo no route >&2; exit 255", **more
):
    """Run a playbook of the collection on the inventory in DIRECTORY, with an ssh that notes that it was called.

    playbook: its name, or the path of one; ssh: shell commands that take the place of a connection; more: environment
    variables
    """
    program = directory / "ssh"
    program.write_text(f"#!/bin/sh\ntouch {directory}/contacted\n{ssh}\n", encoding="utf-8")
    program.chmod(0o755)
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")},
        "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg"),
        "ANSIBLE_HOME": str(directory / "home"),  # where runs that go on are noted
        "ANSIBLE_COLLECTIONS_PATH": str(collections),
        "ANSIBLE_SSH_EXECUTABLE": str(program),
        "ANSIBLE_NOCOLOR": "1",
        "COLUMNS": "80",
        **more,
    }
    if isinstance(playbook, str):
        playbook = collections / "ansible_collections" / "allreduce" / "gpu" / "playbooks" / f"{playbook}.yml"
    argv = [Path(sys.executable).parent / "ansible-playbook", playbook, "-i", directory / "inventory", *options]
    done = subprocess.run(
        argv, cwd=directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return Played(directory, done.returncode, done.stdout)


def write_inventory(directory, content):
    """Make the inventory of this content in DIRECTORY."""
    (directory / "inventory").mkdir()
    (directory / "inventory" / "hosts.yml").write_text(yaml.safe_dump(content), encoding="utf-8")
