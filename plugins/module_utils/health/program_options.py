# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of the program of role health, as /etc/allreduce/health.json has them."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json

from .check_table import BY_CODE, OPTIONS, OPTIONS_OVER_TIME

DECLARATION = "/etc/allreduce/health.json"
DIRECTORY = "/var/lib/allreduce/health"
THRESHOLDS = dict(OPTIONS, **OPTIONS_OVER_TIME)
# Besides the thresholds of the checks.
DEFAULTS = {
    "skip_checks": [],
    "seconds": 45,  # until the driver counts as one that does not answer
    "textfile_directory": "",
    "hook": "",
    "hook_mode": "shadow",
    "hook_seconds": 60,
    "hook_per_day": 3,
    "hook_per_week": 5,
}


def parse(text):
    """Return the whole options; ValueError with the words for invalid ones."""
    try:
        declared = json.loads(text)
    except ValueError as error:
        raise ValueError("is not JSON: %s" % error)
    if not isinstance(declared, dict):
        raise ValueError("is not a mapping of options")
    unknown = sorted(set(declared) - set(DEFAULTS) - set(THRESHOLDS))
    unknown += sorted(set(declared.get("skip_checks") or ()) - set(BY_CODE))
    if unknown:
        raise ValueError("has unknown names: %s" % ", ".join(unknown))
    limits = {name: option.get("default") for name, option in THRESHOLDS.items()}
    return dict(DEFAULTS, **dict(limits, **declared))
