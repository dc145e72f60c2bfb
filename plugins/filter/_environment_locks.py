# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: a host's Python environments with their valid locks."""

from __future__ import annotations

DOCUMENTATION = r"""
name: _environment_locks
short_description: Compare a node's Python environments with their locks
author: "The allreduce.gpu authors (@allreduce)"
description:
  - Says for each environment of C(gpu_stack) what it asks for, which valid lock the host has, and whether exactly that
    is installed.
positional: platform, files, installed
options:
  _input:
    description: The C(environments) of C(gpu_stack).
    type: list
    elements: dict
    required: true
  platform:
    description: The C(os) of C(gpu_stack).
    type: dict
    required: true
  files:
    description: Results of reading the locks with M(ansible.builtin.slurp) in a loop over the environments.
    type: list
    elements: dict
    required: true
  installed:
    description: The C(environments) of C(gpu_node_state).
    type: dict
    required: true
  index_url:
    description: Address to use in place of the framework's own index; empty for none; C({name}) stands for its name.
    type: str
  no_index:
    description: Whether no index is used at all.
    type: bool
    default: false
  relock:
    description: Whether locks that exist are to be ignored.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Compare environments with their locks
  ansible.builtin.set_fact:
    environments: >-
      {{ ansible_facts.gpu_stack.environments | allreduce.gpu._environment_locks(
         ansible_facts.gpu_stack.os, locks.results, ansible_facts.gpu_node_state.environments) }}
"""

RETURN = r"""
_value:
  description: For each environment by its name a dictionary of name, python, requirements, index, digest, lock, installed,
    reinstall, the packages of which a file is not as it was installed, conda, whether conda made it, and executable, its interpreter.
  type: dict
"""

from ..plugin_utils.environments.locks import describe_environments  # noqa: E402


class FilterModule:
    """The filter of this file."""

    def filters(self):
        """Return {name: function}."""
        return {"_environment_locks": describe_environments}
