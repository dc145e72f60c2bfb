# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the network adapters of each GPU, best first."""

DOCUMENTATION = """
name: nearest_nics
short_description: Rank the network adapters of each GPU, nearest first
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - A port with the link layer and rate of the node's rails comes before a nearer one without, such as a management port or one
    that came up at half its rate, and both before a port that is down.
  - Equal ports are ordered by distance, then by the kernel's distance of their NUMA nodes, then by PCI address. A distance that was not
    measured orders nothing.
extends_documentation_fragment: [allreduce.gpu.gpu_node]
"""

EXAMPLES = """
- name: Show the result
  ansible.builtin.debug:
    msg: "{{ ansible_facts.gpu_node
      | allreduce.gpu.nearest_nics }}"
"""

RETURN = """
_value:
  description: For each GPU, the names of the adapters.
  type: dict
"""

from ..plugin_utils.topology.nics import nearest_nics  # noqa: E402


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"nearest_nics": nearest_nics}
