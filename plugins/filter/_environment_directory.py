# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the directory for an environment with a certain content."""

from __future__ import annotations

DOCUMENTATION = r"""
name: _environment_directory
short_description: Derive the directory of a Python environment from its content
author: "The allreduce.gpu authors (@allreduce)"
description:
  - Returns a dot, the name of the environment, and a digest of everything that decides on its content.
positional: platform, lock, conda_lock
options:
  _input:
    description: One of the C(environments) of C(gpu_stack).
    type: dict
    required: true
  platform:
    description: The C(os) of C(gpu_stack).
    type: dict
    required: true
  lock:
    description: Text of the lock of its wheels.
    type: str
    required: true
  conda_lock:
    description: Text of the lock of conda's packages.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Name the directory
  ansible.builtin.debug:
    msg: "{{ ansible_facts.gpu_stack.environments[0] | allreduce.gpu._environment_directory(ansible_facts.gpu_stack.os, lock) }}"
"""

RETURN = r"""
_value:
  description: The name of the directory; empty where the lock is.
  type: str
  sample: .main-0123456789ab
"""

from ..plugin_utils.environments.places import environment_directory  # noqa: E402


class FilterModule:
    """The filter of this file."""

    def filters(self):
        """Return {name: function}."""
        return {"_environment_directory": environment_directory}
