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
    description: V(others) for what the answer needs of the other nodes, V(answer) for the options of M(allreduce.gpu.firewall).
    type: list
    elements: str
    required: true
  others:
    description: What V(others) returned, for an answer. One task gathers it for all nodes.
    type: dict
    default: {}
  boot:
    description: Files that load the rules at boot, for module firewall.
    type: list
    elements: dict
    default: []
"""

EXAMPLES = """
- name: Show why a node's firewall cannot be changed
  ansible.builtin.debug:
    msg: "{{ lookup('allreduce.gpu._firewall', 'answer', others=lookup('allreduce.gpu._firewall', 'others')).problems }}"
"""

RETURN = """
_raw:
  description:
    - Of V(others), the few variables that an answer reads of the other nodes and of the controllers.
    - Of V(answer), C(plan) with the options of M(allreduce.gpu.firewall), and C(problems) as sentences.
  type: list
  elements: dict
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from collections import ChainMap

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ..plugin_utils.cluster.others import of_others
from ..plugin_utils.documents.parsing import DocumentError
from ..plugin_utils.subjects.firewall.answer import answer
from ..plugin_utils.subjects.firewall.request import DEFAULTS, READS_OF_OTHERS
from ..plugin_utils.subjects.monitoring.request import hosts_of


class LookupModule(LookupBase):
    """Adapter for Ansible."""

    def run(self, terms, variables=None, **kwargs):
        self.set_options(var_options=variables, direct=kwargs)
        groups = variables.get("groups") or {}
        answers = {
            "others": lambda: of_others(variables["hostvars"], hosts_of(groups), READS_OF_OTHERS),
            "answer": lambda: self._answer(variables, groups),
        }
        try:
            return [answers[term]() for term in terms]
        except DocumentError as error:
            raise AnsibleLookupError(str(error)) from error

    def _answer(self, variables, groups):
        """Answer with what the role's own play or arguments set for the task's node, and the inventory for the other nodes."""
        name, facts = variables["inventory_hostname"], variables.get("ansible_facts") or {}
        own = {key: self._templar.template(variables[key]) for key in DEFAULTS if key in variables}
        # A copy would template every variable of the host, whoever's it is.
        hostvars = {**self.get_option("others"), name: ChainMap(own, variables["hostvars"][name])}
        return answer(name, hostvars, groups, facts, self.get_option("boot"))
