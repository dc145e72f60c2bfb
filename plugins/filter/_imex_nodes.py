# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the nodes that share memory over the NVLink fabric of a rack."""

from __future__ import annotations

DOCUMENTATION = """
name: _imex_nodes
short_description: List the cluster addresses of the nodes in each part of a rack's NVLink fabric
author: The allreduce.gpu authors (@allreduce)
description:
  - Nodes belong together whose measured C(gpu_node.fabric.domain) is equal.
  - Reads the variables of all nodes, once for all of them.
positional: hostvars
options:
  _input:
    description: Names of the nodes.
    type: list
    elements: str
    required: true
  hostvars:
    description: Variables of the hosts.
    type: dict
    required: true
"""

EXAMPLES = """
- name: Show which nodes share memory
  ansible.builtin.debug:
    msg: "{{ groups['gpu_nodes'] | allreduce.gpu._imex_nodes(hostvars) }}"
  run_once: true
"""

RETURN = """
_value:
  description: By the fabric's domain, addresses in the order of the nodes; without the nodes whose fabric is not known or ends in them.
  type: dict
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ..plugin_utils.cluster.address import READS, cluster_address
from ..plugin_utils.node.told import admitted_neighbours


def imex_nodes(names, hostvars):
    """Return {domain: addresses of the nodes in it}."""
    found = {}
    for variables in admitted_neighbours(hostvars, names, (*READS, "ansible_facts.gpu_node.fabric.domain")).values():
        domain, address = _domain(variables), cluster_address(variables)
        if domain is not None and address:
            found.setdefault(domain, []).append(address)
    return found


def _domain(variables):
    fabric = ((variables.get("ansible_facts") or {}).get("gpu_node") or {}).get("fabric") or {}
    return fabric.get("domain")


class FilterModule:
    """The filter of this file."""

    def filters(self):
        """Return {name: function}."""
        return {"_imex_nodes": imex_nodes}
