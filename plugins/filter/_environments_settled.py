# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: whether the Python environments of all nodes are as planned."""

from __future__ import annotations

DOCUMENTATION = r"""
name: _environments_settled
short_description: Test whether the Python environments of all nodes are as planned
author: "The allreduce.gpu authors (@allreduce)"
description:
  - Decides by the facts C(gpu_stack) and C(gpu_node_state) of the hosts. Where a fact is missing, or C(frameworks_relock) is set for a
    host, they are not.
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

EXAMPLES = r"""
- name: Determine whether the environments are as planned
  ansible.builtin.set_fact:
    settled: "{{ ansible_play_hosts | allreduce.gpu._environments_settled(hostvars) }}"
  run_once: true
"""

RETURN = r"""
_value:
  description: Whether each environment is in use, has no drift, and was made from the lock that the others have.
  type: bool
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ansible.module_utils.parsing.convert_bool import boolean

from ..plugin_utils.environments.settled import are_settled


def environments_settled(hosts, hostvars):
    """Look at the variables of one host after the other."""
    given = [hostvars[host] for host in hosts]
    if any(boolean(one.get("frameworks_relock", False), strict=False) for one in given):
        return False
    facts = (one.get("ansible_facts") or {} for one in given)
    return are_settled((one.get("gpu_stack"), one.get("gpu_node_state")) for one in facts)


class FilterModule:
    """The filter of this file."""

    def filters(self):
        """Return {name: function}."""
        return {"_environments_settled": environments_settled}
