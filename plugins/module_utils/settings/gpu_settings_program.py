# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program on a node that applies the recorded declaration at boot, without Ansible."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import sys

from ..machine.nvml import DEFAULT_LIBRARY
from .declaration import parse
from .gpu_settings import LockedClocks, NoDriver, settle

RECORD = "/etc/allreduce/gpu_settings.json"


def main(arguments):
    """Print the answer as JSON; return 0 when all is as declared.

    What one GPU refuses does not keep others from theirs.
    """
    if set(arguments) - {"--check"}:
        return "usage: gpu_settings [--check]"
    return apply_record(RECORD, DEFAULT_LIBRARY, LockedClocks(), "--check" in arguments)


def apply_record(record, library, locked, check):
    """Apply what was recorded; return None, or what to say on standard error before exiting with 1."""
    try:
        with open(record) as stream:
            entries = parse(json.load(stream))
        done = settle(entries, library, locked, check, partly=True)
    except (EnvironmentError, ValueError) as error:
        return "%s cannot be applied: %s" % (record, error)
    except NoDriver as error:
        return str(error)
    del done["diff"]
    sys.stdout.write(json.dumps(done, indent=2, sort_keys=True) + "\n")
    for warning in done["warnings"]:
        sys.stderr.write(warning + "\n")
    return "\n".join(done["problems"]) or None
