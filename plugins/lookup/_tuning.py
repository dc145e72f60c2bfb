# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup: what the node of the task is tuned to."""

from __future__ import annotations

DOCUMENTATION = """
name: _tuning
short_description: Derive the tuning of a node from its variables and facts
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Lays the user's variables and the facts of the node over the table of settings.
options:
  _terms:
    description:
      - V(questions) for the options of M(allreduce.gpu.tuning_facts); V(answer) for what follows from the fact that it returns.
    type: list
    elements: str
    required: true
"""

EXAMPLES = """
- name: Show why a node cannot be tuned
  ansible.builtin.debug:
    msg: "{{ lookup('allreduce.gpu._tuning', 'answer').problems }}"
"""

RETURN = """
_raw:
  description:
    - Of V(questions), C(sysctl), C(services) and C(interfaces); of V(answer), C(plan) with the options of M(allreduce.gpu.tuning),
      C(problems) and C(left), what the node does not get, each as sentences.
  type: list
  elements: dict
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ..plugin_utils.documents.parsing import DocumentError
from ..plugin_utils.subjects.tuning.answer import answer, questions
from ..plugin_utils.subjects.tuning.request import DEFAULTS


class LookupModule(LookupBase):
    """Adapter for Ansible."""

    def run(self, terms, variables=None, **kwargs):
        given = {name: self._templar.template(variables[name]) for name in DEFAULTS if name in variables}
        given["groups"] = variables.get("groups") or {}
        try:
            facts = variables.get("ansible_facts") or {}
            return [questions(given) if term == "questions" else answer(given, facts) for term in terms]
        except DocumentError as error:
            raise AnsibleLookupError(str(error)) from error
