# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: how fast an all-reduce over the GPUs of a node could be."""

DOCUMENTATION = """
name: expected_bus_bandwidth
short_description: Estimate the bus bandwidth of an all-reduce over the GPUs of a node
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - The peak bus bandwidth as nccl-tests define it, from active NVLinks and their generation, or from PCIe.
  - Null for a single GPU and where the links are not known.
extends_documentation_fragment: [allreduce.gpu.gpu_node]
"""

EXAMPLES = """
- name: Show the result
  ansible.builtin.debug:
    msg: "{{ ansible_facts.gpu_node
      | allreduce.gpu.expected_bus_bandwidth }}"
"""

RETURN = """
_value:
  description: GB/s.
  type: float
"""

from ..plugin_utils.topology.islands import expected_bus_bandwidth  # noqa: E402


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"expected_bus_bandwidth": expected_bus_bandwidth}
