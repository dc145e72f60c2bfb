# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: what has to be tried out on a node."""

DOCUMENTATION = """
name: _verification_plan
short_description: Choose the probes that verify a node's stack
author: The allreduce.gpu authors (@allreduce)
description:
  - Derives the options of M(allreduce.gpu.node_probe) and M(allreduce.gpu.gpu_health) from a node's stack and facts,
    and the other nodes' addresses.
positional: node, variables, cluster, peers, nproc_per_node, network_rounds
options:
  _input:
    description: The planned stack, C(ansible_facts.gpu_stack).
    type: dict
    required: true
  node:
    description: Name of the node.
    type: str
    required: true
  variables:
    description: The node's variables.
    type: dict
    required: true
  cluster:
    description: What P(allreduce.gpu._verification_cluster#filter) returns.
    type: dict
    required: true
  peers:
    description: Names of the nodes which must reach each other, of those in O(cluster); the node itself is left out.
    type: list
    elements: str
    required: true
  nproc_per_node:
    description: Ranks per node of the collectives, a number or V(auto).
    type: str
    default: auto
  network_rounds:
    description: Other nodes that the node is to try at most; V(0) leaves the network alone.
    type: int
    default: 0
"""

EXAMPLES = """
- name: Show what will be tried out
  ansible.builtin.debug:
    msg: "{{ ansible_facts.gpu_stack
      | allreduce.gpu._verification_plan(inventory_hostname, hostvars[inventory_hostname],
                                         groups['gpu_nodes'] | allreduce.gpu._verification_cluster(hostvars), groups['gpu_nodes']) }}"
"""

RETURN = """
_value:
  description:
    - C(nvidia_smi), C(environments) and C(peers) as M(allreduce.gpu.node_probe) takes them, C(gpu_health), whether
      M(allreduce.gpu.gpu_health) has anything to judge, with its C(gpu_count), C(torch_environment), the environment in
      which collectives can run, C(collectives), their C(device) and C(nproc_per_node), and C(network) for
      M(allreduce.gpu.node_probe).
  type: dict
"""

from ..plugin_utils.checks.plan import verification_plan  # noqa: E402


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"_verification_plan": verification_plan}
