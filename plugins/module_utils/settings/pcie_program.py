# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program on a node that writes at boot what the hardware forgets: redirection by ACS, and sizes of read requests."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import sys

from ..machine.files import FileTree
from . import tuning, tuning_plan, tuning_record
from .pcie_facts import RECORD, acs_register, read_pcie, refusals, registers
from .tuning_describe import describe
from .tuning_program import replace, value_steps

DECLARATION = "/etc/allreduce/pcie.json"


def main(arguments, tree=None):
    """Apply the declaration, or with --check only print each change. What guests were given since keeps its isolation."""
    if set(arguments) - {"--check"}:
        return "usage: pcie [--check]"
    machine = tuning.Machine(tree or FileTree(), replace, record=tuning_record.path_of(RECORD))
    try:
        with open(machine.tree.path(DECLARATION)) as stream:
            steps, refused = allowed_steps(machine.tree, json.load(stream))
        if steps and "--check" not in arguments:
            record = tuning_record.load(machine.tree, machine.record) or tuning_record.empty(machine.tree)
            tuning.write_record(machine, tuning_plan.recorded_before(record, steps))
    except (EnvironmentError, ValueError) as error:
        return "%s cannot be applied: %s" % (DECLARATION, error)
    problems = []
    for step in steps:
        sys.stdout.write("%(subject)s: %(before)s -> %(after)s\n" % step)
        problems += [] if "--check" in arguments else tuning.set_value(machine.tree, step)
    return "\n".join(map(describe, refused + problems)) or None


def allowed_steps(tree, declared):
    """Return (steps, [problem]). A device that is not there any more, or not between GPUs and adapters, is left alone."""
    fact = read_pcie(tree)
    allowed, refused = set(registers(fact)), refusals(fact)
    if refused:
        allowed -= {acs_register(address) for address in fact["bridges"]}
    wanted = {one["path"] for one in declared["values"]}
    return [
        step for step in value_steps(tree, declared) if step["subject"] in allowed
    ], refused if wanted - allowed else []
