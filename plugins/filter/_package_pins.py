# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the exact versions that keep a set of installed packages where it is."""

from __future__ import annotations

DOCUMENTATION = """
name: _package_pins
short_description: Group installed packages by version, to pin them
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Of the installed packages, takes those that a pattern names and groups them by their exact version.
positional: installed, excluded
options:
  _input:
    description: Patterns (fnmatch) of package names.
    type: list
    elements: str
    required: true
  installed:
    description: Installed versions by package name, as C(ansible_facts.gpu_node_state.packages) has them.
    type: dict
    required: true
  excluded:
    description: Patterns of packages to leave out although another pattern names them.
    type: list
    elements: str
    default: []
"""

EXAMPLES = """
- name: Show what a pin file would hold
  ansible.builtin.debug:
    msg: "{{ ['nvidia-*', 'libnvidia-*'] | allreduce.gpu._package_pins(ansible_facts.gpu_node_state.packages) }}"
"""

RETURN = """
_value:
  description: Groups of packages of one version, each with C(version) and C(packages).
  type: list
  elements: dict
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ..plugin_utils.packages.missing import pins


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"_package_pins": pins}
