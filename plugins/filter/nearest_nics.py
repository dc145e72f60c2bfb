# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the network adapters of each GPU, best first."""

DOCUMENTATION = """
name: nearest_nics
short_description: The network adapters of each GPU, best first
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Orders by distance, then by a port that is up, its rate, and the name.
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
  description: For each GPU the names of the adapters.
  type: dict
"""

from ..plugin_utils.topology.nics import nearest_nics  # noqa: E402


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"nearest_nics": nearest_nics}
