# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the Python environments that have to be made."""

from __future__ import annotations

DOCUMENTATION = r"""
name: _environments_to_create
short_description: List the Python environments that must be created
author: "The allreduce.gpu authors (@allreduce)"
description:
  - Environments of the stack that the node lacks, whose interpreter is gone, or which were made with one other than the stack names.
positional: state
options:
  _input:
    description: The fact C(gpu_stack).
    type: dict
    required: true
  state:
    description: The fact C(gpu_node_state).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show what has to be made
  ansible.builtin.debug:
    msg: "{{ ansible_facts.gpu_stack | allreduce.gpu._environments_to_create(ansible_facts.gpu_node_state) }}"
"""

RETURN = r"""
_value:
  description: The environments.
  type: list
  elements: dict
  contains:
    name:
      description: Name of the environment.
      type: str
    python:
      description: Version of Python.
      type: str
      sample: "3.10"
    source:
      description: Where the interpreter comes from, C(distribution), C(standalone) or C(path).
      type: str
    executable:
      description: Path of the interpreter, or a version to search for where the stack names no path.
      type: str
      sample: /usr/bin/python3.10
"""

from ..plugin_utils.environments.creation import environments_to_create  # noqa: E402


class FilterModule:
    """The filter of this file."""

    def filters(self):
        """Return {name: function}."""
        return {"_environments_to_create": environments_to_create}
