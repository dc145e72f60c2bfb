# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: which node compiles the driver's kernel module for which others."""

from __future__ import annotations

DOCUMENTATION = r"""
name: _kernel_module_plan
short_description: Decide which node compiles the driver's kernel module, and which nodes take it
author: "The allreduce.gpu authors (@allreduce)"
description:
  - Nodes share a module where driver, kernels and architecture are the same and, where the kernel demands signatures, the key of DKMS.
positional: hostvars, builder
options:
  _input:
    description: Names of the hosts, in order.
    type: list
    elements: str
    required: true
  hostvars:
    description: The variables of all hosts, with the facts C(gpu_stack) and C(gpu_node_state).
    type: dict
    required: true
  builder:
    description: Name of the node that compiles for the others of its kind, or V(first).
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Choose the nodes that compile the kernel module
  ansible.builtin.set_fact:
    plan: "{{ ansible_play_hosts | allreduce.gpu._kernel_module_plan(hostvars, 'first') }}"
  run_once: true
"""

RETURN = r"""
_value:
  description: For each host that takes the module giver, name, arch and kernels.
  type: dict
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ansible.errors import AnsibleFilterError

from ..plugin_utils.documents.parsing import DocumentError
from ..plugin_utils.node.told import admitted
from ..plugin_utils.packages.shared_builds import READS, assign_builders


def kernel_module_plan(hosts, hostvars, builder):
    """Collect the facts of the hosts that have a plan."""
    found = {}
    for host, variables in admitted(hostvars, hosts, READS).items():
        facts = variables.get("ansible_facts") or {}
        if facts.get("gpu_stack"):
            asks = bool(variables.get("__nvidia_driver_asks"))
            found[host] = {"stack": facts["gpu_stack"], "state": facts.get("gpu_node_state"), "asks": asks}
    try:
        return assign_builders(found, builder)
    except DocumentError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    """The filter of this file."""

    def filters(self):
        """Return {name: function}."""
        return {"_kernel_module_plan": kernel_module_plan}
