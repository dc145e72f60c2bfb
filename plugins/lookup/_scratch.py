# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup: what is asked of the disks of the task's node."""

from __future__ import annotations

DOCUMENTATION = """
name: _scratch
short_description: Derive the scratch space of a node from its variables
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Applies the user's variables to the defaults of role scratch.
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
    msg: "{{ lookup('allreduce.gpu._scratch', 'answer').problems }}"
"""

RETURN = """
_raw:
  description:
    - C(question) with the options of M(allreduce.gpu.scratch_facts), C(options) with those of M(allreduce.gpu.scratch), and
      C(problems) as sentences.
  type: list
  elements: dict
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ansible.plugins.lookup import LookupBase

from ..plugin_utils.subjects.scratch.answer import VARIABLES, answer


class LookupModule(LookupBase):
    """Adapter for Ansible."""

    def run(self, terms, variables=None, **kwargs):
        given = {name: self._templar.template(variables[name]) for name in VARIABLES if name in variables}
        return [answer(given) for dummy in terms]
