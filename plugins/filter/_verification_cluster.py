# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: what the verification of each node has to know of the others."""

DOCUMENTATION = """
name: _verification_cluster
short_description: Gather the addresses of all nodes, and whether one computes without GPUs
author: The allreduce.gpu authors (@allreduce)
description:
  - Reads the variables of all nodes, once for all of them.
positional: hostvars
options:
  _input:
    description: Names of the nodes of the play.
    type: list
    elements: str
    required: true
  hostvars:
    description: The variables of all hosts.
    type: dict
    required: true
"""

EXAMPLES = """
- name: Gather the addresses of all nodes
  ansible.builtin.set_fact:
    nodes: "{{ ansible_play_hosts | allreduce.gpu._verification_cluster(hostvars) }}"
  run_once: true
"""

RETURN = """
_value:
  description: C(addresses) of the nodes by their names, and C(without_gpus), whether a node runs collectives without GPUs.
  type: dict
"""

from ..plugin_utils.checks.plan import READS, verification_cluster  # noqa: E402
from ..plugin_utils.node.told import admitted_neighbours  # noqa: E402


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {
            "_verification_cluster": lambda names, hostvars: verification_cluster(
                admitted_neighbours(hostvars, names, READS)
            )
        }
