# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup: why the driver of the task's node needs a reboot."""

from __future__ import annotations

DOCUMENTATION = """
name: _reboot
short_description: Tell why the driver of a node needs a reboot
author: The allreduce.gpu authors (@allreduce)
description:
  - Compares the facts C(gpu_stack) and C(gpu_node_state) of the node of the task.
options:
  _terms:
    description: None.
    type: list
    elements: str
  parameters_changed:
    description: Parameters of the kernel module were written since the node booted.
    type: bool
    default: false
"""

EXAMPLES = """
- name: Show why a reboot is due
  ansible.builtin.debug:
    msg: "{{ lookup('allreduce.gpu._reboot').reason }}"
"""

RETURN = """
_raw:
  description: C(code) and C(reason), both empty where no reboot is due.
  type: list
  elements: dict
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ..plugin_utils.documents.parsing import DocumentError
from ..plugin_utils.drift.desired import DEFAULTS
from ..plugin_utils.drift.reboot import reboot_due
from ..plugin_utils.drift.record import both


class LookupModule(LookupBase):
    """Adapter for Ansible."""

    def run(self, terms, variables=None, **kwargs):
        self.set_options(var_options=variables, direct=kwargs)
        options = {name: self._templar.template(variables[name]) for name in DEFAULTS if name in variables}
        facts = variables.get("ansible_facts") or {}
        try:
            desired, observed = both(facts.get("gpu_stack"), facts.get("gpu_node_state"), options)
        except DocumentError as error:
            raise AnsibleLookupError(str(error)) from error
        return [reboot_due(desired, observed, self.get_option("parameters_changed"))._asdict()]
