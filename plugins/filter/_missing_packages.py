# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the packages of a plan that a host lacks."""

from __future__ import annotations

DOCUMENTATION = """
name: _missing_packages
short_description: Tell which planned packages a host lacks
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Compares planned packages with the installed ones, without asking the host again.
positional: installed, joint
options:
  _input:
    description: Names, or dictionaries with C(name) and C(version); a version may be an fnmatch pattern or null.
    type: list
    elements: raw
    required: true
  installed:
    description: Installed versions by package name, as C(ansible_facts.gpu_node_state.packages) has them.
    type: dict
    required: true
  joint:
    description: What joins name and version; C(=) for apt, C(-) for dnf.
    type: str
    default: "="
"""

EXAMPLES = """
- name: Say what is still to be installed
  ansible.builtin.debug:
    msg: "{{ ansible_facts.gpu_stack.driver.packages
          | allreduce.gpu._missing_packages(ansible_facts.gpu_node_state.packages) }}"
"""

RETURN = """
_value:
  description: Arguments for the package manager, such as C(name) or C(name=version).
  type: list
  elements: str
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ..plugin_utils.packages.missing import missing


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"_missing_packages": missing}
