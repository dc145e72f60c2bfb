# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the hosts that did not answer."""

from __future__ import annotations

DOCUMENTATION = """
name: _unreachable_hosts
short_description: The hosts role stack could not reach
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Names the hosts whose facts could not be gathered, where role stack was told to ignore that.
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
- name: Show who did not answer
  ansible.builtin.debug:
    msg: "{{ ansible_play_hosts_all | allreduce.gpu._unreachable_hosts(hostvars) }}"
  run_once: true
"""

RETURN = """
_value:
  description: Sorted names.
  type: list
  elements: str
"""


def unreachable_hosts(hosts, hostvars):
    """What setup registered says who was lost."""
    return sorted(host for host in hosts if (hostvars[host].get("__stack_reached") or {}).get("unreachable", False))


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"_unreachable_hosts": unreachable_hosts}
