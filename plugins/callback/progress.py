# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Callback: which tasks have run for long, and for how long."""

from __future__ import annotations

DOCUMENTATION = """
name: progress
type: aggregate
short_description: Show long tasks with elapsed time
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Shows in the last rows of the terminal which hosts are working on a task that takes a long time, one line for each host, such as a package
    installation, a DKMS build or a Python environment. The line has the elapsed time.
  - Ansible's own output and questions stay above these rows. The rows are released when no long task is left.
  - Where the output is a file or a pipe, or E(TERM) is V(dumb), it prints such lines whenever O(silence) seconds pass without other output.
  - The playbooks of the collection print such lines, on a terminal as well, without it.
  - It only listens. If it cannot write it stops, and the run continues.
requirements:
  - It is named in C(callbacks_enabled) of C(ansible.cfg), or in C(ANSIBLE_CALLBACKS_ENABLED).
options:
  threshold:
    description: Seconds that a task has run before it is shown.
    type: float
    default: 5
    env:
      - name: ALLREDUCE_PROGRESS_THRESHOLD
    ini:
      - section: callback_allreduce_progress
        key: threshold
  interval:
    description: Seconds between two updates.
    type: float
    default: 1
    env:
      - name: ALLREDUCE_PROGRESS_INTERVAL
    ini:
      - section: callback_allreduce_progress
        key: interval
  hosts:
    description:
      - Maximum number of lines, and at most a third of the terminal. The hosts whose tasks have run longest are shown; the last line
        counts the others.
    type: int
    default: 10
    env:
      - name: ALLREDUCE_PROGRESS_HOSTS
    ini:
      - section: callback_allreduce_progress
        key: hosts
  silence:
    description: Seconds without output after which lines are printed where the output is not a terminal, and where it is not enabled.
    type: float
    default: 60
    env:
      - name: ALLREDUCE_PROGRESS_SILENCE
    ini:
      - section: callback_allreduce_progress
        key: silence
"""

EXAMPLES = r"""
ansible_cfg: |
  [defaults]
  callbacks_enabled = allreduce.gpu.progress

  [callback_allreduce_progress]
  threshold = 10

environment: |
  ANSIBLE_CALLBACKS_ENABLED=allreduce.gpu.progress ansible-playbook allreduce.gpu.site -i cluster

shown: |
  gpu-1  4m 12s  nvidia_driver : Install and hold the planned driver packages
  gpu-2  4m 10s  nvidia_driver : Install and hold the planned driver packages
"""

import os
import sys

from ansible import constants as C  # noqa: N812 (its usual name)
from ansible.playbook.role_include import IncludeRole
from ansible.plugins.callback import CallbackBase

from ..plugin_utils.node.beat import Beat
from ..plugin_utils.progress.painter import Painter, Reporter, can_show, has_descriptor


class CallbackModule(CallbackBase):
    """Adapter for Ansible."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "allreduce.gpu.progress"
    CALLBACK_NEEDS_ENABLED = True

    def set_options(self, *args, **kwargs):
        super().set_options(*args, **kwargs)
        self._names = {}
        self.disabled = self.is_off()
        if self.disabled:
            return
        Beat.is_needed = False
        options = {name: self.get_option(name) for name in ("interval", "hosts")}
        if self.keeps_rows():
            self._painter = Painter(sys.stdout, self.get_option("threshold"), **options)
        else:
            self._painter = Reporter(sys.stdout, self.get_option("silence"), **options)
            self._painter.listen(self._display)

    def is_off(self):
        """Return True where nothing is to be shown."""
        return not has_descriptor(sys.stdout) or "json" in C.DEFAULT_STDOUT_CALLBACK

    def keeps_rows(self):
        """Return True to keep the last rows of a terminal, False to print lines."""
        return can_show(sys.stdout, os.environ.get("TERM", ""))

    def v2_playbook_on_task_start(self, task, is_conditional):
        self._names[task._uuid] = _name(task)  # here it is without variables

    def v2_playbook_on_handler_task_start(self, task):
        self.v2_playbook_on_task_start(task, False)

    def v2_runner_on_start(self, host, task):
        self._painter.start(host.get_name(), self._names.get(task._uuid) or _name(task))

    def v2_runner_on_ok(self, result):
        self._painter.end(result._host.get_name())

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self.v2_runner_on_ok(result)

    def v2_runner_on_skipped(self, result):
        self.v2_runner_on_ok(result)

    def v2_runner_on_unreachable(self, result):
        self.v2_runner_on_ok(result)

    def v2_playbook_on_stats(self, stats):
        self._painter.stop()


def _name(task):
    """Return the name of a task with its role; that which includes a role takes no options."""
    return task.get_name() if isinstance(task, IncludeRole) else task.get_name(include_role_fqcn=False)
