# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: a host's environments that conda makes, with their valid locks."""

from __future__ import annotations

DOCUMENTATION = r"""
name: _conda_environments
short_description: List the packages that conda installs in a node's Python environments
author: "The allreduce.gpu authors (@allreduce)"
description:
  - Says for each environment of C(gpu_stack) that conda makes what is asked of conda, and which valid lock the host has.
positional: platform, files, channels, packages
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
  channels:
    description: Channels of conda.
    type: list
    elements: str
    required: true
  packages:
    description: What conda installs in addition to Python.
    type: list
    elements: str
    required: true
  relock:
    description: Whether locks that exist are to be ignored.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: List the packages for conda
  ansible.builtin.set_fact:
    environments: >-
      {{ ansible_facts.gpu_stack.environments
         | allreduce.gpu._conda_environments(ansible_facts.gpu_stack.os, locks.results, ['conda-forge'], ['libjpeg-turbo']) }}
"""

RETURN = r"""
_value:
  description: For each environment by its name a dictionary of name, specs, digest, lock and former, the lock that is there.
  type: dict
"""

from ..plugin_utils.environments.conda import conda_environments  # noqa: E402


class FilterModule:
    """The filter of this file."""

    def filters(self):
        """Return {name: function}."""
        return {"_conda_environments": conda_environments}
