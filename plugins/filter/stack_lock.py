# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the lock file of a plan."""

DOCUMENTATION = """
name: stack_lock
short_description: The text of a lock file for the stacks of hosts
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Puts the stacks of hosts into the lock; what the lock has of other hosts stays.
positional: hostvars, path
options:
  _input:
    description: Names of the hosts.
    type: list
    elements: str
    required: true
  hostvars:
    description: The variables of all hosts; C(ansible_facts.gpu_stack) of each is locked.
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
    content: "{{ ansible_play_hosts_all | allreduce.gpu.stack_lock(hostvars, stack_lock) }}"
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
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack import lock


def stack_lock(hosts, hostvars, path):
    """The lock file with the stacks of these hosts."""
    return lock.text(lock.renewed(lock.read(path), [hostvars[host]["ansible_facts"]["gpu_stack"] for host in hosts]))


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"stack_lock": stack_lock}
