# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write to the file $ALLREDUCE_DECISIONS each question that the resolver answers and each stack that a host is given.

Both are JSON lines: {asked: its system}, from whatever process, and {host, stack}.
"""

from __future__ import annotations

import functools
import json
import os
from importlib import import_module

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: decisions
type: aggregate
short_description: Record what is resolved and what is published
description: Appends a line for each question the resolver answers, and for each host whose stack is set.
requirements: [the environment variable ALLREDUCE_DECISIONS]
"""
DECIDE = "ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.decide"


def _wrap(choose, path):
    @functools.wraps(choose)
    def counted(question, tables):
        _write(path, {"asked": question["os"]})
        return choose(question, tables)

    return counted


def _write(path, row):
    with open(path, "a", encoding="utf-8") as out:
        out.write(json.dumps(row) + "\n")


class CallbackModule(CallbackBase):
    """Wrap the resolver, which the workers inherit, and look at the results."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "decisions"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.path = os.environ.get("ALLREDUCE_DECISIONS")
        if self.path:
            module = import_module(DECIDE)
            module.choose = _wrap(module.choose, self.path)

    def v2_runner_on_ok(self, result):
        """Record a published stack."""
        stack = (result._result.get("ansible_facts") or {}).get("gpu_stack")
        if self.path and stack:
            _write(self.path, {"host": result._host.get_name(), "stack": stack})
