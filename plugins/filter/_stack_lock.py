# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the lock file of a plan."""

DOCUMENTATION = """
name: _stack_lock
short_description: Format a plan as the text of a lock file
author: The allreduce.gpu authors (@allreduce)
description:
  - Puts the stacks of a plan into the lock; what the lock has of other hosts stays.
positional: path
options:
  _input:
    description: The plan, as P(allreduce.gpu._cluster_plan#filter) returns it.
    type: dict
    required: true
  path:
    description: Path of the lock file as it is; it need not exist.
    type: path
    required: true
"""

EXAMPLES = """
- name: Keep the plan
  ansible.builtin.copy:
    content: "{{ ansible_play_hosts_all | allreduce.gpu._cluster_plan(hostvars) | allreduce.gpu._stack_lock(stack_lock) }}"
    dest: "{{ stack_lock }}"
    mode: "0644"
  delegate_to: localhost
  run_once: true
"""

RETURN = """
_value:
  description: Text of the lock file.
  type: str
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ..plugin_utils.planning import lock


def stack_lock(plan, path):
    """Return the lock file with the stacks of this plan."""
    stacks = [answer["stack"] for kind in plan["stacks"] for answer in kind["answers"]]
    return lock.text(lock.renewed(lock.read(path), stacks))


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"_stack_lock": stack_lock}
