# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup: what settings subjects read of the hosts of the inventory."""

from __future__ import annotations

DOCUMENTATION = """
name: _others
short_description: Gather what subjects read of the hosts of the inventory
author: The allreduce.gpu authors (@allreduce)
description:
  - One task gathers it for all hosts, for O(allreduce.gpu.subject#module:others).
  - A host that says what cannot be is left out, with a warning.
options:
  _terms:
    description: Names of subjects, as of M(allreduce.gpu.subject).
    type: list
    elements: str
    required: true
"""

EXAMPLES = """
- name: Show what role qos knows of the cluster
  ansible.builtin.debug:
    msg: "{{ lookup('allreduce.gpu._others', 'qos') }}"
"""

RETURN = """
_raw:
  description: For each subject, values of hosts by their names.
  type: list
  elements: dict
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ansible.plugins.lookup import LookupBase

from ..plugin_utils.node.told import admitted_neighbours
from ..plugin_utils.subjects import BY_NAME


class LookupModule(LookupBase):
    """Adapter for Ansible."""

    def run(self, terms, variables=None, **kwargs):
        groups = variables.get("groups") or {}
        subjects = [BY_NAME[term] for term in terms]
        return [admitted_neighbours(variables["hostvars"], one.hosts(groups), one.reads_of_others) for one in subjects]
