# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program on a node that gives an interface what its driver forgets when it is probed again, without Ansible."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import subprocess
import sys

from ..machine.files import FileTree
from . import rdma, rdma_plan
from .rdma_describe import describe
from .tuning import Machine

DECLARATION = "/etc/allreduce/rdma.json"
USAGE = "usage: rdma [--check] INTERFACE"


def main(arguments, machine=None):
    """Apply what is declared for the interface, or with --check only print each change; a refusal keeps no other from its turn."""
    names = [one for one in arguments if one != "--check"]
    if len(names) != 1 or names[0].startswith("-"):
        return USAGE
    machine = machine or Machine(FileTree(), None, run)
    try:
        with open(machine.tree.path(DECLARATION)) as stream:
            wanted = dict(rdma_plan.NOTHING, **json.load(stream)["interfaces"].get(names[0], {}))
        wanted["values"] = rdma.expanded(machine.tree, wanted["values"])
        steps, problems = rdma.make_steps(machine, wanted, rdma_plan.empty())
    except (EnvironmentError, ValueError, KeyError) as error:
        return "%s cannot be applied: %s" % (DECLARATION, error)
    for step in steps:
        sys.stdout.write(
            "%s: %s -> %s\n" % tuple([step["subject"]] + [rdma_plan.words(step[key]) for key in ("before", "after")])
        )
    if "--check" not in arguments:
        problems += rdma.apply_steps(machine, steps)
    return "\n".join(map(describe, problems)) or None


def run(arguments):
    """Return (exit status, both outputs)."""
    try:
        done = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    except OSError as error:
        return 127, str(error)
    output = done.communicate()[0]
    return done.returncode, output
