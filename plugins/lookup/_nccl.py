# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup: what NCCL is told on the node of the task."""

from __future__ import annotations

DOCUMENTATION = """
name: _nccl
short_description: Derive a node's NCCL configuration from its variables and facts
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Lays the user's variables over what follows from the facts of the node.
options:
  _terms:
    description: V(answer).
    type: list
    elements: str
    required: true
"""

EXAMPLES = """
- name: Show what is refused
  ansible.builtin.debug:
    msg: "{{ lookup('allreduce.gpu._nccl', 'answer').problems }}"
"""

RETURN = """
_raw:
  description:
    - C(files) for M(allreduce.gpu.tuning), C(problems) as sentences, and C(dropped), variables of a file by somebody else
      that ours does not have.
  type: list
  elements: dict
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ..plugin_utils.documents.parsing import DocumentError
from ..plugin_utils.subjects.nccl.answer import VARIABLES, answer


class LookupModule(LookupBase):
    """Adapter for Ansible."""

    def run(self, terms, variables=None, **kwargs):
        given = {name: self._templar.template(variables[name]) for name in VARIABLES if name in variables}
        try:
            return [answer(given, variables.get("ansible_facts") or {}) for dummy in terms]
        except DocumentError as error:
            raise AnsibleLookupError(str(error)) from error
