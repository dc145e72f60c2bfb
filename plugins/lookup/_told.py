# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup: what other nodes say at one place of their variables."""

from __future__ import annotations

DOCUMENTATION = """
name: _told
short_description: Read a fact or a registered result of other nodes
author: The allreduce.gpu authors (@allreduce)
description:
  - Judges what nodes say before it is used. A node that says something impossible is left out, with a warning.
  - Takes the place of C(hostvars), through which no role reads another node.
options:
  _terms:
    description: The path of a value within the variables of a host, such as V(ansible_facts.gpu_node.nics).
    type: list
    elements: str
    required: true
  hosts:
    description: Names of the hosts.
    type: list
    elements: str
    required: true
"""

EXAMPLES = """
- name: Show what the nodes measured
  ansible.builtin.debug:
    msg: "{{ lookup('allreduce.gpu._told', '__benchmark_results', hosts=groups.gpu_nodes) }}"
  run_once: true
"""

RETURN = """
_raw:
  description: For each path, the values by the names of the hosts that have one.
  type: list
  elements: dict
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from functools import reduce

from ansible.plugins.lookup import LookupBase

from ..plugin_utils.node.told import admitted


class LookupModule(LookupBase):
    """Adapter for Ansible."""

    def run(self, terms, variables=None, **kwargs):
        self.set_options(var_options=variables, direct=kwargs)
        return [self._values(variables["hostvars"], path) for path in terms]

    def _values(self, hostvars, path):
        found = admitted(hostvars, self.get_option("hosts"), [path])
        return {name: reduce(dict.__getitem__, path.split("."), one) for name, one in found.items() if one}
