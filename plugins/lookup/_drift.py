# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup: what differs from the plan on the node of the task."""

from __future__ import annotations

DOCUMENTATION = """
name: _drift
short_description: List the differences between the plan and a node
author: The allreduce.gpu authors (@allreduce)
description:
  - Compares the facts C(gpu_stack) and C(gpu_node_state) of the node of the task, narrowed by the variables of roles that
    change what is desired, such as C(nvidia_driver_state).
options:
  _terms:
    description: Components to return, such as V(driver) or V(node); all without any.
    type: list
    elements: str
"""

EXAMPLES = """
- name: Show what role nvidia_driver would change
  ansible.builtin.debug:
    msg: "{{ query('allreduce.gpu._drift', 'driver') }}"
"""

RETURN = """
_raw:
  description:
    - Differences with C(component), C(subject), C(desired), C(observed), C(status), C(remedy) and C(kind).
  type: list
  elements: dict
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ..plugin_utils.documents.parsing import DocumentError
from ..plugin_utils.drift.desired import DEFAULTS
from ..plugin_utils.drift.record import node_drift


class LookupModule(LookupBase):
    """Adapter for Ansible."""

    def run(self, terms, variables=None, **kwargs):
        options = {name: self._templar.template(variables[name]) for name in DEFAULTS if name in variables}
        facts = variables.get("ansible_facts") or {}
        try:
            found = node_drift(facts.get("gpu_stack"), facts.get("gpu_node_state"), options)
        except DocumentError as error:
            raise AnsibleLookupError(str(error)) from error
        return [one for one in found if not terms or one["component"] in terms]
