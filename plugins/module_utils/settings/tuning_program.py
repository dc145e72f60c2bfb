# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program on a node that applies at boot what neither sysctl.d nor tuned does, without Ansible."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import sys

from ..host.sysctl import selected
from ..machine.files import FileTree
from . import tuning
from .tuning_describe import describe
from .tuning_plan import NOTHING

DECLARATION = "/etc/allreduce/tuning.json"


def main(arguments, tree=None):
    """[--check]: print each change; what one switch refuses does not keep others from theirs."""
    if set(arguments) - {"--check"}:
        return "usage: tuning [--check]"
    tree = tree or FileTree()
    try:
        with open(tree.path(DECLARATION)) as stream:
            declared = json.load(stream)
    except (EnvironmentError, ValueError) as error:
        return "%s cannot be applied: %s" % (DECLARATION, error)
    problems = []
    for one in tuning.resolved(tree, dict(NOTHING, **declared))["values"]:
        before = selected(tree.text(one["path"]))
        if before != one["value"]:
            sys.stdout.write("%s: %s -> %s\n" % (one["path"], before, one["value"]))
            step = {"subject": one["path"], "after": one["value"]}
            problems += [] if "--check" in arguments else tuning.set_value(tree, step)
    return "\n".join(map(describe, problems)) or None
