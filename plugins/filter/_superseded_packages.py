# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: what of another driver must go."""

from __future__ import annotations

DOCUMENTATION = """
name: _superseded_packages
short_description: Installed packages of another driver than the planned one
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Names the installed packages that belong to another branch, to the other kernel modules or to another source of the
    driver, to be removed before the planned ones are installed.
  - A package the plan has under the same name is not among them.
positional: installed
options:
  _input:
    description: The planned driver, C(ansible_facts.gpu_stack.driver).
    type: dict
    required: true
  installed:
    description: Installed versions by package name, as C(ansible_facts.gpu_node_state.packages) has them.
    type: dict
    required: true
"""

EXAMPLES = """
- name: Show what a switch of the branch would remove
  ansible.builtin.debug:
    msg: "{{ ansible_facts.gpu_stack.driver | allreduce.gpu._superseded_packages(ansible_facts.gpu_node_state.packages) }}"
"""

RETURN = """
_value:
  description: Sorted names.
  type: list
  elements: str
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ..plugin_utils.drift.superseded import superseded_packages


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"_superseded_packages": superseded_packages}
