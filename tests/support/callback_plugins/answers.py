# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Let no module reach a host: each is answered from the file $ALLREDUCE_ANSWERS, and changes nothing.

The file has {module: result}, and for a node whose answers differ {node: {module: result}}; an answer of a module that the file
lacks is empty. Modules whose connection is local run.
"""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path

from ansible.plugins.action import ActionBase
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: answers
type: aggregate
short_description: Answer for hosts that are as planned
description: Takes the place of the function that every action sends modules through, before Ansible forks its workers.
requirements: [the environment variable ALLREDUCE_ANSWERS]
"""
UNCHANGED = {"changed": False, "rc": 0, "stdout": "", "stderr": ""}


def _answered(execute, answers):
    @functools.wraps(execute)
    def answer(self, module_name=None, *args, **kwargs):
        if self._connection.transport == "local":
            return execute(self, module_name, *args, **kwargs)
        own = {**answers, **answers.get(self._play_context.remote_addr, {})}
        return {**UNCHANGED, **own.get((module_name or self._task.action).rpartition(".")[2], {})}

    return answer


class CallbackModule(CallbackBase):
    """Nothing but the wrapper."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "answers"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        path = os.environ.get("ALLREDUCE_ANSWERS")
        if path:
            answers = json.loads(Path(path).read_text(encoding="utf-8"))
            ActionBase._execute_module = _answered(ActionBase._execute_module, answers)
