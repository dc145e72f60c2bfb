# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: where the locks of a host's Python environments are."""

from __future__ import annotations

DOCUMENTATION = r"""
name: _environment_lock_files
short_description: List the lock files that may match the requests of a node's Python environments
author: "The allreduce.gpu authors (@allreduce)"
description:
  - Names the lock of the environment in use, or that of an older environment that is kept, where only it was made for the request.
positional: platform, state, root, locks
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
  state:
    description: Fact C(gpu_node_state).
    type: dict
    required: true
  root:
    description: Directory of the environments.
    type: str
    required: true
  locks:
    description: Directory of the locks of the environments in use.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Read the locks
  ansible.builtin.slurp:
    src: "{{ item.path }}"
  loop: >-
    {{ ansible_facts.gpu_stack.environments | allreduce.gpu._environment_lock_files(
       ansible_facts.gpu_stack.os, ansible_facts.gpu_node_state, '/opt/allreduce/envs', '/etc/allreduce/locks') }}
"""

RETURN = r"""
_value:
  description: For each environment its name, and the path of its lock.
  type: list
  elements: dict
  sample: [{name: main, path: /etc/allreduce/locks/main.txt}]
"""

from ..plugin_utils.environments.places import lock_files  # noqa: E402


class FilterModule:
    """The filter of this file."""

    def filters(self):
        """Return {name: function}."""
        return {"_environment_lock_files": lock_files}
