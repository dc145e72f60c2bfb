# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the nodes that share memory over the NVLink fabric of a rack."""

from __future__ import annotations

DOCUMENTATION = """
name: _imex_nodes
short_description: List the cluster addresses of nodes in the same part of a rack's NVLink fabric
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Nodes belong together whose measured C(gpu_node.fabric.domain) is equal.
positional: hostvars, node
options:
  _input:
    description: Names of the nodes to choose from.
    type: list
    elements: str
    required: true
  hostvars:
    description: Variables of the hosts.
    type: dict
    required: true
  node:
    description: The node whose peers are wanted; it is one of them.
    type: str
    required: true
"""

EXAMPLES = """
- name: Show which nodes share memory
  ansible.builtin.debug:
    msg: "{{ groups['gpu_nodes'] | allreduce.gpu._imex_nodes(hostvars, inventory_hostname) }}"
"""

RETURN = """
_value:
  description: Addresses in the order of the nodes; empty where the fabric of the node is not known or ends in it.
  type: list
  elements: str
"""

from ..plugin_utils.cluster.address import cluster_address  # noqa: E402 (sanity wants the documentation first)


def imex_nodes(names, hostvars, node):
    """Return the addresses of the nodes in the fabric of this one."""
    own = _domain(hostvars[node])
    peers = [name for name in names if own is not None and _domain(hostvars[name]) == own]
    return [address for address in (cluster_address(hostvars[name]) for name in peers) if address]


def _domain(variables):
    fabric = ((variables.get("ansible_facts") or {}).get("gpu_node") or {}).get("fabric") or {}
    return fabric.get("domain")


class FilterModule:
    """The filter of this file."""

    def filters(self):
        """Return {name: function}."""
        return {"_imex_nodes": imex_nodes}
