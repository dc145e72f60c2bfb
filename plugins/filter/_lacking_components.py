# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the apt components that some suite of the archive is used without."""

from __future__ import annotations

DOCUMENTATION = """
name: _lacking_components
short_description: Tell which apt components a host's own mirrors lack
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Of the given components, returns those that at least one suite of the archive is used without.
positional: components
options:
  _input:
    description: Entries with C(uri), C(suite) and C(components), as C(apt_mirrors) of node_state has them.
    type: list
    elements: dict
    required: true
  components:
    description: Components that every suite should have.
    type: list
    elements: str
    required: true
"""

EXAMPLES = """
- name: Say whether the non-free archive is in use
  ansible.builtin.debug:
    msg: "{{ ansible_facts.gpu_node_state.apt_mirrors | allreduce.gpu._lacking_components(['non-free']) }}"
"""

RETURN = """
_value:
  description: The components lacking.
  type: list
  elements: str
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ..plugin_utils.packages.apt_sources import lacking_components


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"_lacking_components": lacking_components}
