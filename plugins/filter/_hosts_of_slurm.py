# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the hosts on which role slurm has anything to do."""

from __future__ import annotations

DOCUMENTATION = """
name: _hosts_of_slurm
short_description: List the hosts that have something to do with Slurm
author: The allreduce.gpu authors (@allreduce)
description:
  - Returns the hosts of C(gpu_nodes), C(controllers) and C(login_nodes) for which the inventory sets C(slurm_state), to give the pattern
    of a play.
positional: hostvars
options:
  _input:
    description: Names of hosts by the name of their group.
    type: dict
    required: true
  hostvars:
    description: The variables of all hosts.
    type: dict
    required: true
"""

EXAMPLES = """
- name: Describe the nodes to Slurm
  hosts: "{{ groups | allreduce.gpu._hosts_of_slurm(hostvars) }}"
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
from ..plugin_utils.subjects.slurm.answer import SWITCH, concerned, hosts_of


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {
            "_hosts_of_slurm": lambda groups, hostvars: (
                concerned(admitted(hostvars, hosts_of(groups), [SWITCH]), groups) or ["all:!all"]
            )
        }
