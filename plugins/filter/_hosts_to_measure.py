# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the hosts a plan has to contact."""

from __future__ import annotations

DOCUMENTATION = """
name: _hosts_to_measure
short_description: List the nodes that the inventory does not describe
author: The allreduce.gpu authors (@allreduce)
description:
  - Leaves out the hosts the inventory describes with C(gpu_stack_host), to give the pattern of a play that measures the rest.
positional: hostvars, everyone
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
  everyone:
    description: Whether described hosts are to be measured too. The variable C(plan_measure) of a host says so for it.
    type: bool
    default: false
"""

EXAMPLES = """
- name: Measure
  hosts: "{{ groups['gpu_nodes'] | allreduce.gpu._hosts_to_measure(hostvars) }}"
  tasks: []
"""

RETURN = """
_value:
  description: Names of hosts; where there are none, a pattern that fits no host.
  type: list
  elements: str
"""


# ruff: noqa: E402 (sanity wants the documentation first)
from ansible.module_utils.parsing.convert_bool import boolean


def hosts_to_measure(hosts, hostvars, everyone=False):
    """Return hosts in the order given; a play must not have an empty list of hosts."""

    def is_wanted(host):
        known = hostvars.get(host, {})
        return not known.get("gpu_stack_host") or boolean(known.get("plan_measure", False))

    return [host for host in hosts if boolean(everyone) or is_wanted(host)] or ["all:!all"]


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"_hosts_to_measure": hosts_to_measure}
