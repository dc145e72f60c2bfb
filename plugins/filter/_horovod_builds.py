# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: a host's builds of Horovod."""

from __future__ import annotations

DOCUMENTATION = r"""
name: _horovod_builds
short_description: Describe a node's builds of Horovod
author: "The allreduce.gpu authors (@allreduce)"
description:
  - Says for each environment of C(gpu_stack) that has Horovod on which digest its wheel depends, whether the host has that wheel, and
    whether it is installed.
positional: platform, locks, state
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
  locks:
    description: For each environment by its name the text of its lock.
    type: dict
    required: true
  state:
    description: Fact C(gpu_node_state).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Compare Horovod of the environments with their plan
  ansible.builtin.set_fact:
    builds: >-
      {{ ansible_facts.gpu_stack.environments | allreduce.gpu._horovod_builds(
         ansible_facts.gpu_stack.os, locks, ansible_facts.gpu_node_state) }}
"""

RETURN = r"""
_value:
  description: For each environment with Horovod by its name a dictionary of name, digest, build, wheel, installed.
  type: dict
"""

from ..plugin_utils.environments.builds import describe_builds  # noqa: E402


class FilterModule:
    """The filter of this file."""

    def filters(self):
        """Return {name: function}."""
        return {"_horovod_builds": describe_builds}
