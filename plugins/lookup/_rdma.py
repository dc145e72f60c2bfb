# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup: what the node of the task gets from role rdma."""

from __future__ import annotations

DOCUMENTATION = """
name: _rdma
short_description: Derive the RDMA configuration of a node from its variables and facts
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Lays the user's variables over the facts of the node.
"""

EXAMPLES = """
- name: Show why the ports of a node cannot be set up
  ansible.builtin.debug:
    msg: "{{ lookup('allreduce.gpu._rdma').problems }}"
"""

RETURN = """
_raw:
  description:
    - C(present), whether the node has adapters; C(plan) with the options of M(allreduce.gpu.rdma); C(problems) and C(found), each as
      sentences.
  type: list
  elements: dict
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ..plugin_utils.documents.parsing import DocumentError
from ..plugin_utils.subjects.rdma.answer import answer
from ..plugin_utils.subjects.rdma.request import DEFAULTS


class LookupModule(LookupBase):
    """Adapter for Ansible."""

    def run(self, terms, variables=None, **kwargs):
        given = {name: self._templar.template(variables[name]) for name in DEFAULTS if name in variables}
        try:
            return [answer(given, variables.get("ansible_facts") or {})]
        except DocumentError as error:
            raise AnsibleLookupError(str(error)) from error
