# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the hosts on which role monitoring has anything to do."""

from __future__ import annotations

DOCUMENTATION = """
name: _hosts_to_monitor
short_description: List the hosts that are monitored, watch, or did so before
author: The allreduce.gpu authors (@allreduce)
description:
  - Leaves out the hosts of C(gpu_nodes) and C(controllers) that are not to be monitored and never were, to give the pattern of a play.
positional: hostvars, state
options:
  _input:
    description: Names of hosts by the name of their group.
    type: dict
    required: true
  hostvars:
    description: The variables of all hosts.
    type: dict
    required: true
  state:
    description: The value of C(monitoring_state) in the play.
    type: str
    default: absent
"""

EXAMPLES = """
- name: Monitor
  hosts: "{{ groups | allreduce.gpu._hosts_to_monitor(hostvars) }}"
  tasks: []
"""

RETURN = """
_value:
  description: Names of hosts; where there are none, a pattern that fits no host.
  type: list
  elements: str
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ..plugin_utils.node.told import admitted
from ..plugin_utils.subjects.monitoring.answer import to_monitor
from ..plugin_utils.subjects.monitoring.request import READS_OF_OTHERS, hosts_of


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {
            "_hosts_to_monitor": lambda groups, hostvars, state="absent": (
                to_monitor(admitted(hostvars, hosts_of(groups), READS_OF_OTHERS), groups, state) or ["all:!all"]
            )
        }
