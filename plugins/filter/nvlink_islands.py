# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: GPUs that should train together."""

DOCUMENTATION = """
name: nvlink_islands
short_description: Group GPUs that should train together
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Groups the GPUs that reach each other over NVLink alone. A GPU without NVLink is a group of its own.
extends_documentation_fragment: [allreduce.gpu.gpu_node]
"""

EXAMPLES = """
- name: Show the result
  ansible.builtin.debug:
    msg: "{{ ansible_facts.gpu_node
      | allreduce.gpu.nvlink_islands }}"
"""

RETURN = """
_value:
  description: Lists of GPU names.
  type: list
"""

from ..plugin_utils.topology.islands import nvlink_islands  # noqa: E402


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"nvlink_islands": nvlink_islands}
