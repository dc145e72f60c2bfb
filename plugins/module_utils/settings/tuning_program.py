# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program on a node that applies at boot what neither sysctl.d nor tuned does, without Ansible."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import os
import sys

from ..machine.files import FileTree
from . import tuning, tuning_plan, tuning_record
from .tuning_describe import describe

DECLARATION = "/etc/allreduce/tuning.json"


def main(arguments, tree=None):
    """Apply the declaration, or with --check only print each change; one refusal does not keep others from theirs.

    What was there is recorded first, so that what this boot has given to interrupts is put back as well.
    """
    if set(arguments) - {"--check"}:
        return "usage: tuning [--check]"
    machine = tuning.Machine(tree or FileTree(), replace)
    try:
        with open(machine.tree.path(DECLARATION)) as stream:
            steps = value_steps(machine.tree, json.load(stream))
        if steps and "--check" not in arguments:
            record = tuning_record.load(machine.tree) or tuning_record.empty(machine.tree)
            tuning.write_record(machine, tuning_plan.recorded_before(record, steps))
    except (EnvironmentError, ValueError) as error:
        return "%s cannot be applied: %s" % (DECLARATION, error)
    problems = []
    for step in steps:
        sys.stdout.write("%(subject)s: %(before)s -> %(after)s\n" % step)
        problems += [] if "--check" in arguments else tuning.set_value(machine.tree, step)
    return "\n".join(map(describe, problems)) or None


def value_steps(tree, declared):
    """Return steps to the values that differ from the declaration."""
    values = tuning.resolved(tree, dict(tuning_plan.NOTHING, **declared))["values"]
    found = {one["path"]: tuning.read_value(tree, one["path"]) for one in values}
    return tuning_plan.value_steps(values, tuning_record.empty(tree), found)


def replace(path, content):
    """Put the bytes CONTENT in place at once."""
    new = path + ".new"
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
        stream.write(content)
    os.rename(new, path)
