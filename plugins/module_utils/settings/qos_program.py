# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program on a node that shapes interfaces again, at boot and when one of them comes back, without Ansible."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import os
import subprocess

from ..machine.files import FileTree
from . import qos
from .qos_describe import describe
from .qos_facts import TABLE_SHOW, parse_digest, read_live


def main(arguments, tree=None, start=None):
    """Load the rules and shape the named interfaces, all that are declared without a name; those that are not there wait.

    What an interface was before the role is recorded, so nothing is recorded here.
    """
    machine = qos.Machine(tree or FileTree(), None, start or run)
    try:
        declared = json.loads(machine.tree.text(qos.DECLARATION) or "")
    except ValueError as error:
        return "%s cannot be read: %s" % (qos.DECLARATION, error)
    problems = []
    if parse_digest(machine.output(TABLE_SHOW)) != declared["digest"]:
        problems += qos.load_table(machine, machine.tree.text(qos.TABLE_FILE))
    live = read_live(machine.output)
    wanted = {one["name"]: one for one in declared["interfaces"] if not arguments or one["name"] in arguments}
    # tc shows nothing of an interface that is down.
    there = [name for name in sorted(wanted) if machine.output(["ip", "link", "show", "dev", name]) is not None]
    for step in qos.interface_steps([wanted[name] for name in there], live):
        name = step["subject"]
        problems += qos.bring(machine, name, wanted[name], None, live.get(name))
    return "\n".join(map(describe, problems)) or None


def run(arguments, data=None):
    """Return (exit code, both outputs) of a program; 127 where there is none."""
    try:
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(os.environ, LC_ALL="C", LANG="C"),
        )
    except EnvironmentError as error:
        return 127, error.strerror
    output = process.communicate((data or "").encode("utf-8"))[0]
    return process.returncode, output.decode("utf-8", "replace")
