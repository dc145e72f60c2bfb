# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup: what the firewall of the task's node is to let through."""

from __future__ import annotations

DOCUMENTATION = """
name: _firewall
short_description: Derive a node's firewall rules from the inventory and the node's facts
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Lays the user's variables of all nodes over the fact C(gpu_firewall) of the task's node.
options:
  _terms:
    description: Name of the node.
    type: list
    elements: str
    required: true
  boot:
    description: Files that load the rules at boot, for module firewall.
    type: list
    elements: dict
    default: []
"""

EXAMPLES = """
- name: Show why a node's firewall cannot be changed
  ansible.builtin.debug:
    msg: "{{ lookup('allreduce.gpu._firewall', inventory_hostname).problems }}"
"""

RETURN = """
_raw:
  description: C(plan) with the options of M(allreduce.gpu.firewall), and C(problems) as sentences.
  type: list
  elements: dict
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from collections import ChainMap

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ..plugin_utils.documents.parsing import DocumentError
from ..plugin_utils.firewall.answer import answer
from ..plugin_utils.firewall.request import DEFAULTS


class LookupModule(LookupBase):
    """Adapter for Ansible."""

    def run(self, terms, variables=None, **kwargs):
        self.set_options(var_options=variables, direct=kwargs)
        variables = variables or {}
        own = {name: self._templar.template(variables[name]) for name in DEFAULTS if name in variables}
        everyone, groups = variables["hostvars"], variables.get("groups") or {}
        try:
            return [self._answer(name, own, everyone, groups) for name in terms]
        except DocumentError as error:
            raise AnsibleLookupError(str(error)) from error

    def _answer(self, name, own, everyone, groups):
        """Answer for one node: what the role's own play or arguments set counts for its node, and for the other nodes what the inventory has."""
        hostvars = {
            node: everyone[node] for node in {name, *groups.get("gpu_nodes", ()), *groups.get("controllers", ())}
        }
        facts = everyone[name].get("ansible_facts") or {}
        # A copy would template every variable of the host, whoever's it is.
        hostvars[name] = ChainMap(own, everyone[name])
        return answer(name, hostvars, groups, facts, self.get_option("boot"))
