# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write one line for every remote module execution to the file $ALLREDUCE_EXECUTIONS.

Tasks are the wrong thing to count: a template that changes nothing executes two modules, a skipped
task none. So the one function every action plugin sends modules through is wrapped, before Ansible
forks its workers; these inherit the wrapper and append to the file. Under a strategy of Mitogen, which
has a function of its own for that, both are wrapped: `by` says which of them sent the module. Hosts with
connection local are the controller; $ALLREDUCE_COUNT_LOCAL counts them too. $ALLREDUCE_RECORD adds what
each module was told, and what came of it: enough to do the same by hand.
"""

from __future__ import annotations

import functools
import json
import os
import time

from ansible import constants
from ansible.plugins.action import ActionBase
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: executions
type: aggregate
short_description: Count remote module executions
description: Appends C({host, module, task, role, by}) as one JSON line for each module executed on a host.
requirements: [the environment variable ALLREDUCE_EXECUTIONS]
"""


def _wrap(execute, path, sender):
    @functools.wraps(execute)
    def counted(self, *args, **kwargs):
        connection = self._connection.transport
        if connection == "local" and not os.environ.get("ALLREDUCE_COUNT_LOCAL"):
            return execute(self, *args, **kwargs)
        role = self._task._role.get_name() if self._task._role else None
        line = {
            "host": _host(self, kwargs),
            "module": kwargs.get("module_name") or (args[0] if args else None) or self._task.action,
            "task": self._task.get_name(),
            "role": role,
            "by": sender,
        }
        if not os.environ.get("ALLREDUCE_RECORD"):
            _append(path, line)
            return execute(self, *args, **kwargs)
        given = kwargs.get("module_args") or (args[1] if len(args) > 1 else None) or self._task.args
        line["arguments"] = {key: value for key, value in given.items() if not key.startswith("_ansible")}
        line["asks"] = False in (
            self._task.changed_when or []
        )  # what the task does is not a change, whatever the module says
        line["environment"] = {}
        self._compute_environment_string(line["environment"])
        began = time.monotonic()
        result = execute(self, *args, **kwargs)
        line.update(seconds=round(time.monotonic() - began, 3), changed=bool(result.get("changed")))
        _append(path, line)
        return result

    return counted


def _append(path, line):
    with open(path, "a", encoding="utf-8") as out:
        out.write(json.dumps(line, default=str) + "\n")


def _host(action, kwargs):
    task_vars = kwargs.get("task_vars") or {}
    return task_vars.get("inventory_hostname") or action._connection.get_option("host")


def _senders():
    """Yield the classes that send modules to hosts, and their names."""
    yield ActionBase, "ansible"
    if constants.DEFAULT_STRATEGY.startswith("mitogen"):
        from ansible_mitogen.mixins import ActionModuleMixin

        yield ActionModuleMixin, "mitogen"


class CallbackModule(CallbackBase):
    """Nothing but the wrappers."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "executions"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        path = os.environ.get("ALLREDUCE_EXECUTIONS")
        for owner, name in _senders() if path else ():
            owner._execute_module = _wrap(owner._execute_module, path, name)
