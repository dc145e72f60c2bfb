# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup: a role's template, without a copy of all variables."""

from __future__ import annotations

DOCUMENTATION = """
name: _template
short_description: Render a template of a role
author: The allreduce.gpu authors (@allreduce)
description:
  - Returns what P(ansible.builtin.template#lookup) returns, and takes the same options.
  - That one first copies all variables deeply, those of all hosts among them, to add a few of its own. For a role's small files this
    costs more than everything else, and grows with the cluster.
options:
  _terms:
    description: Names of templates, searched for as by P(ansible.builtin.template#lookup).
    type: list
    elements: str
    required: true
"""

EXAMPLES = """
- name: Show a unit
  ansible.builtin.debug:
    msg: "{{ lookup('allreduce.gpu._template', 'settings.service.j2') }}"
"""

RETURN = """
_raw:
  description: The rendered templates.
  type: list
  elements: str
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ansible.plugins.loader import lookup_loader
from ansible.plugins.lookup import LookupBase


class _Shared(dict):
    """Variables that a deep copy shares; what it adds does not reach them."""

    def __deepcopy__(self, memo):
        return dict(self)


class LookupModule(LookupBase):
    """Adapter for Ansible."""

    def run(self, terms, variables=None, **kwargs):
        template = lookup_loader.get("ansible.builtin.template", loader=self._loader, templar=self._templar)
        return template.run(terms, _Shared(variables), **kwargs)
