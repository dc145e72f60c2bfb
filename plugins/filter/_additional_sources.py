# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: apt sources that add components to the archive a host already uses."""

from __future__ import annotations

DOCUMENTATION = """
name: _additional_sources
short_description: List the apt sources that add components to a node's own mirrors
author: The allreduce.gpu authors (@allreduce)
description:
  - Looks at the entries that bear the component V(main), and describes sources of the same archive, suites and keyring
    for the components these lack.
positional: components
options:
  _input:
    description: Entries with C(uri), C(suite), C(components) and C(signed_by), as C(apt_mirrors) of node_state has them.
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
- name: Show what would be added for non-free drivers
  ansible.builtin.debug:
    msg: "{{ ansible_facts.gpu_node_state.apt_mirrors | allreduce.gpu._additional_sources(['contrib', 'non-free']) }}"
"""

RETURN = """
_value:
  description: Sources, each with C(uri), C(suites), C(components) and C(signed_by).
  type: list
  elements: dict
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ..plugin_utils.packages.apt_sources import additional_sources


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"_additional_sources": additional_sources}
