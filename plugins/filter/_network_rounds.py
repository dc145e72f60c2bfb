# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: which nodes measure with which, round by round."""

DOCUMENTATION = """
name: _network_rounds
short_description: Pair nodes so that each meets one other per round
author: The allreduce.gpu authors (@allreduce)
description:
  - Schedules a tournament by the circle method. In all rounds together every node meets every other once.
positional: most
options:
  _input:
    description: Names of the nodes, in any order.
    type: list
    elements: str
    required: true
  most:
    description: Rounds at most; fewer than all are spread evenly over them.
    type: int
    required: true
"""

EXAMPLES = """
- name: Show who measures with whom
  ansible.builtin.debug:
    msg: "{{ groups['gpu_nodes'] | allreduce.gpu._network_rounds(16) }}"
"""

RETURN = """
_value:
  description: Of each round, which node serves which client, by client.
  type: list
  elements: dict
  sample: [{gpu-1: gpu-2, gpu-3: gpu-4}]
"""

from ..plugin_utils.network.schedule import servers_by_client  # noqa: E402


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"_network_rounds": servers_by_client}
