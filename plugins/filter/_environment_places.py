# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: where a host's Python environments are made."""

from __future__ import annotations

DOCUMENTATION = r"""
name: _environment_places
short_description: Choose the directories of a node's Python environments
author: "The allreduce.gpu authors (@allreduce)"
description:
  - An environment that is to change is created next to the one in use, in a directory named after its content. One that is there already
    is only activated again. What was damaged is repaired in its place.
positional: platform, described, plan, state, conda, remade
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
  described:
    description: What P(allreduce.gpu._environment_locks#filter) gave.
    type: dict
    required: true
  plan:
    description: What P(allreduce.gpu._lock_plan#filter) gave.
    type: dict
    required: true
  state:
    description: Fact C(gpu_node_state).
    type: dict
    required: true
  conda:
    description: For each environment that conda makes its C(lock), and C(at), the directory in which conda has made it.
    type: dict
    required: true
  remade:
    description: The environments that conda has recreated since the host was measured.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Choose where the environments are created
  ansible.builtin.set_fact:
    places: >-
      {{ ansible_facts.gpu_stack.environments | allreduce.gpu._environment_places(
         ansible_facts.gpu_stack.os, environments, plan, ansible_facts.gpu_node_state, {}, []) }}
"""

RETURN = r"""
_value:
  description:
    - For each environment by its name a dictionary of C(digest), of its request, C(installed), whether it is there, C(directory), in
      which it is to be, C(at), in which it is until then or is made, C(create), whether it is recreated, C(seed), the directory
      to copy first, C(switch), whether it is to be activated, C(late), whether that is done after Horovod, and C(lock),
      C(conda_lock), C(compiled) and C(modules) for M(allreduce.gpu.environment_switch).
  type: dict
"""

from ..plugin_utils.environments.places import describe_places  # noqa: E402


class FilterModule:
    """The filter of this file."""

    def filters(self):
        """Return {name: function}."""
        return {"_environment_places": describe_places}
