# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the checks of one node against its plan."""

DOCUMENTATION = """
name: _node_checks
short_description: Compare what is on a node with what was planned
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Compares packages, kernel modules, driver, GPUs, Python environments and network of a node with its stack.
  - What cannot be known is reported as C(unknown), never as C(passed).
positional: state, gpu_node
options:
  _input:
    description: The planned stack, C(ansible_facts.gpu_stack).
    type: dict
    required: true
  state:
    description: What is installed, C(ansible_facts.gpu_node_state).
    type: dict
    required: true
  gpu_node:
    description: What GPUs there are, C(ansible_facts.gpu_node).
    type: dict
    required: true
  node:
    description: Name of the node.
    type: str
    default: ""
  probe:
    description: What M(allreduce.gpu.node_probe) returned as C(node_probe). Without it, what it would tell is unknown.
    type: dict
  health:
    description: What M(allreduce.gpu.gpu_health) returned. Without it, the health of GPUs is unknown.
    type: dict
"""

EXAMPLES = """
- name: Show checks that failed
  ansible.builtin.debug:
    msg: "{{ ansible_facts.gpu_stack
      | allreduce.gpu._node_checks(ansible_facts.gpu_node_state, ansible_facts.gpu_node, node=inventory_hostname)
      | selectattr('status', 'eq', 'failed') }}"
"""

RETURN = """
_value:
  description:
    - Checks with C(name), C(node), C(category), C(expected), C(measured), C(status) (passed, failed, unknown or
      skipped) and C(reason).
  type: list
  elements: dict
"""

from ..plugin_utils.checks.node import node_checks  # noqa: E402


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"_node_checks": node_checks}
