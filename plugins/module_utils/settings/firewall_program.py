# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program on a node that loads our rules at boot, and goes back to what was there before a change that was not confirmed."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import subprocess

from ..host.nft import FILE
from ..machine.files import FileTree
from . import firewall, firewall_live, firewall_plan
from .firewall_describe import describe

WORDS = ("load", "restore")


def main(arguments, tree=None, start=None):
    """Load our rules, or restore what was there; a boot before the confirmation restores, too."""
    if len(arguments) != 1 or arguments[0] not in WORDS:
        return "usage: firewall load|restore"
    begin = start or run
    if arguments[0] == "load":
        begin = within_the_unit(begin)
    machine = firewall.Machine(tree or FileTree(), replace, begin)
    tree, problems = machine.tree, []
    pending = tree.text(firewall.SNAPSHOT)
    snapshot = firewall_plan.parse(pending, firewall.SNAPSHOT) if pending else None
    if snapshot and (arguments[0] == "restore" or snapshot["boot"] != firewall.boot(tree)):
        problems = firewall.restore(machine, snapshot)
        firewall.disarm(machine)
    if arguments[0] == "load" and tree.exists(FILE):
        problems += firewall_live.load_table(machine)
    return "\n".join(map(describe, problems)) or None


def within_the_unit(start):
    """Return ``start`` without what the unit must not do: wait for services, whose jobs may wait for its own, and stop itself."""

    def begin(arguments, data=None):
        if arguments[0] == "systemctl" and arguments[1] in ("start", "stop"):
            if arguments[2] == firewall_live.UNIT:
                return 0, ""
            arguments = ["systemctl", "--no-block"] + arguments[1:]
        return start(arguments, data)

    return begin


def replace(path, content):
    """Put the bytes in place at once."""
    new = path + ".allreduce-new"
    with open(new, "wb") as stream:
        stream.write(content)
    os.rename(new, path)


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
