# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the plan of many hosts as text."""

DOCUMENTATION = """
name: plan_table
short_description: The plan of many hosts as lines of text
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Puts hosts with equal stacks together and says what each kind gets, and why, in lines for a terminal of 80 columns.
positional: hostvars
options:
  _input:
    description: Names of the hosts.
    type: list
    elements: str
    required: true
  hostvars:
    description: The variables of all hosts; C(ansible_facts.gpu_stack) of each is shown.
    type: dict
    required: true
"""

EXAMPLES = """
- name: Show the plan
  ansible.builtin.debug:
    msg: "{{ ansible_play_hosts_all | allreduce.gpu.plan_table(hostvars) }}"
  run_once: true
"""

RETURN = """
_value:
  description: Lines of text.
  type: list
  elements: str
"""

from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.table import plan_table  # noqa: E402 (sanity wants the documentation first)


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {
            "plan_table": lambda hosts, hostvars: plan_table(
                {host: hostvars[host]["ansible_facts"]["gpu_stack"] for host in hosts}
            )
        }
