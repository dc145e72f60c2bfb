# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: CPUs, NUMA node and network adapter of each local rank."""

DOCUMENTATION = """
name: rank_binding
short_description: Assign CPUs, a NUMA node and a network adapter to each local rank
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Gives each GPU that answers its share of its nearest CPUs, and the nearest adapter that the fewest others use.
extends_documentation_fragment: [allreduce.gpu.gpu_node]
"""

EXAMPLES = """
- name: Show the result
  ansible.builtin.debug:
    msg: "{{ ansible_facts.gpu_node
      | allreduce.gpu.rank_binding }}"
"""

RETURN = """
_value:
  description: For each local rank C(local_rank), C(gpu), C(cpus), C(numa_node) and C(nic).
  type: list
"""

from ..plugin_utils.topology.nics import rank_binding  # noqa: E402


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"rank_binding": rank_binding}
