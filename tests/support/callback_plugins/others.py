# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Note in the file $ALLREDUCE_OTHERS which task of a node reads variables of another node: one line of JSON for each time.

A task that runs once may read them all. One that each node runs makes a cluster of n nodes cost n * n.
"""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path

from ansible.executor.process.worker import WorkerProcess
from ansible.plugins.callback import CallbackBase
from ansible.vars.hostvars import HostVars

DOCUMENTATION = """
name: others
type: aggregate
short_description: Note who reads the variables of other nodes
description: Takes the place of two of Ansible's functions before it forks its workers.
requirements: [the environment variable ALLREDUCE_OTHERS]
"""


def _noted(path):
    current = []

    def run(self):
        current[:] = [self]
        return RUN(self)

    def get(self, name):
        worker = current and current[0]
        if worker and not worker._task.run_once and str(name) != worker._host.name:
            with open(path, "a", encoding="utf-8") as log:
                log.write(
                    json.dumps({"task": worker._task.get_name(), "node": worker._host.name, "other": str(name)}) + "\n"
                )
        return GET(self, name)

    return functools.wraps(RUN)(run), functools.wraps(GET)(get)


RUN, GET = WorkerProcess._run, HostVars.__getitem__


class CallbackModule(CallbackBase):
    """Nothing but the wrappers."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "others"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        path = os.environ.get("ALLREDUCE_OTHERS")
        if path:
            Path(path).touch()
            WorkerProcess._run, HostVars.__getitem__ = _noted(path)
