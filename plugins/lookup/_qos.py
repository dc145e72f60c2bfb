# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup: which shares training gets on the interfaces of the task's node."""

from __future__ import annotations

DOCUMENTATION = """
name: _qos
short_description: Derive the shares of training on a node's interfaces from the inventory and the node's facts
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Lays the user's variables of all nodes over the fact C(gpu_qos) of the task's node.
options:
  _terms:
    description:
      - V(questions) for the options of M(allreduce.gpu.qos_facts), V(answer) for those of M(allreduce.gpu.qos), and V(others) for what
        the answer needs of the other nodes.
    type: list
    elements: str
    required: true
  others:
    description: What V(others) returned, for an answer. One task gathers it for all nodes.
    type: dict
    default: {}
  boot:
    description: Files that shape the interfaces again at boot, for module qos.
    type: list
    elements: dict
    default: []
"""

EXAMPLES = """
- name: Show why a node's traffic cannot be shaped
  ansible.builtin.debug:
    msg: "{{ lookup('allreduce.gpu._qos', 'answer', others=lookup('allreduce.gpu._qos', 'others')).problems }}"
"""

RETURN = """
_raw:
  description: Of an answer, C(plan) with the options of the module, and C(problems) as sentences.
  type: list
  elements: dict
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ..plugin_utils.cluster.others import of_others
from ..plugin_utils.documents.parsing import DocumentError
from ..plugin_utils.subjects.qos.answer import answer, questions
from ..plugin_utils.subjects.qos.request import DEFAULTS, GROUP, READS_OF_OTHERS


class LookupModule(LookupBase):
    """Adapter for Ansible."""

    def run(self, terms, variables=None, **kwargs):
        self.set_options(var_options=variables, direct=kwargs)
        groups = variables.get("groups") or {}
        own = {name: self._templar.template(variables[name]) for name in DEFAULTS if name in variables}
        answers = {
            "questions": lambda: questions(own),
            "others": lambda: of_others(variables["hostvars"], groups.get(GROUP, ()), READS_OF_OTHERS),
            "answer": lambda: self._answer(own, variables, groups),
        }
        try:
            return [answers[term]() for term in terms]
        except DocumentError as error:
            raise AnsibleLookupError(str(error)) from error

    def _answer(self, own, variables, groups):
        """Answer with what the role's own play or arguments set for the task's node, and the inventory for the other nodes."""
        name, facts = variables["inventory_hostname"], variables.get("ansible_facts") or {}
        address = variables["hostvars"][name].get("gpu_cluster_address")
        hostvars = {
            **self.get_option("others"),
            name: {**own, "gpu_cluster_address": address, "ansible_facts": facts},
        }
        return answer(name, hostvars, groups, facts, self.get_option("boot"))
