# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The health of a node in earlier runs: read and kept as one file of JSON."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json

from ..machine.files import replace

FORMAT = 1
EMPTY: dict = {
    "format": FORMAT,
    "boot": None,
    "verdict": None,
    "action": None,
    "findings": {},
    "ports": {},
    "gpus": {},
    "drives": {},
    "acts": [],
    "hook": None,
    "stuck": None,
}


def load(path):
    """Return the state of the last run; that of a first run where there is none, or none that can be read."""
    try:
        with open(path) as stream:
            found = json.load(stream)
    except (IOError, OSError, ValueError):
        found = None
    known = found if isinstance(found, dict) and found.get("format") == FORMAT else {}
    return dict(json.loads(json.dumps(EMPTY)), **known)


def after_boot(state, boot):
    """Return the state as far as it holds in this boot: counters start again, what a person has to clear does not."""
    if state["boot"] == boot:
        return state
    ports = {name: dict(port, readings=[], counters=None, uptime=None) for name, port in state["ports"].items()}
    return dict(state, boot=boot, ports=ports, gpus={}, drives={}, stuck=None)


def keep(path, value, mode=0o644):
    """Put a value as JSON in place at once."""
    replace(path, json.dumps(value, indent=1, sort_keys=True) + "\n", mode)
