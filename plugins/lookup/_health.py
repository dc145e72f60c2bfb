# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup: how the health of the task's node is watched."""

from __future__ import annotations

DOCUMENTATION = """
name: _health
short_description: Derive the periodic health checks of a node from its variables
author: The allreduce.gpu authors (@allreduce)
description:
  - Derives the options of the program that judges a node periodically from the variables of role P(allreduce.gpu.health#role).
options:
  _terms:
    description: V(answer).
    type: list
    elements: str
    required: true
"""

EXAMPLES = """
- name: Show what speaks against the variables
  ansible.builtin.debug:
    msg: "{{ lookup('allreduce.gpu._health', 'answer').problems }}"
"""

RETURN = """
_raw:
  description: C(options) of the program, C(problems) as sentences, and C(former), another directory that has metrics of the program.
  type: list
  elements: dict
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ansible.plugins.lookup import LookupBase

from ..plugin_utils.subjects.health.request import DEFAULTS, answer


class LookupModule(LookupBase):
    """Adapter for Ansible."""

    def run(self, terms, variables=None, **kwargs):
        given = {name: self._templar.template(variables[name]) for name in DEFAULTS if name in variables}
        state = (variables.get("ansible_facts") or {}).get("gpu_node_state") or {}
        declaration = (state.get("health") or {}).get("declaration")
        return [answer(given, declaration) for _term in terms]
