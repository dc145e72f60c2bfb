# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the hosts that answered, or whose inventory says what they are."""

DOCUMENTATION = """
name: plannable_hosts
short_description: Hosts that answered or are described in the inventory
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Leaves out the hosts that role stack could not reach and for which the inventory has no C(gpu_stack_host).
positional: hostvars
options:
  _input:
    description: Names of the hosts.
    type: list
    elements: str
    required: true
  hostvars:
    description: The variables of all hosts.
    type: dict
    required: true
"""

EXAMPLES = """
- name: Show which hosts can be planned
  ansible.builtin.debug:
    msg: "{{ ansible_play_hosts_all | allreduce.gpu.plannable_hosts(hostvars) }}"
"""

RETURN = """
_value:
  description: Names of hosts.
  type: list
  elements: str
"""


def plannable_hosts(hosts, hostvars):
    """Hosts in the order given, without the lost ones."""

    def lost(variables):
        return (variables.get("__stack_reached") or {}).get("unreachable", False)

    return [host for host in hosts if not lost(hostvars[host]) or hostvars[host].get("gpu_stack_host")]


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"plannable_hosts": plannable_hosts}
