# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: which file systems are too small for a stack."""

DOCUMENTATION = """
name: disk_shortage
short_description: Which file systems of a host are too small for its stack
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Compares what of a stack is still to be installed with the free space of the host.
positional: state
options:
  _input:
    description: The stack, as C(ansible_facts.gpu_stack) has it.
    type: dict
    required: true
  state:
    description: The host, as C(ansible_facts.gpu_node_state) has it.
    type: dict
    required: true
"""

EXAMPLES = """
- name: Refuse hosts without room
  ansible.builtin.assert:
    that: ansible_facts.gpu_stack | allreduce.gpu.disk_shortage(ansible_facts.gpu_node_state) | length == 0
"""

RETURN = """
_value:
  description: One sentence per file system that is too small.
  type: list
  elements: str
"""

from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.disk import disk_shortage  # noqa: E402 (sanity wants the documentation first)


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"disk_shortage": disk_shortage}
