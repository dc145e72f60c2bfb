# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup: the files of a program for a node."""

from __future__ import annotations

DOCUMENTATION = """
name: node_program
short_description: Collect the files of a node program from the collection's own code
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Returns what M(allreduce.gpu.config_files) writes so that a node can run parts of this collection without Ansible.
options:
  _terms:
    description: Dotted name of a module below C(plugins/module_utils) that has a function C(main), such as V(machine.gpu_fact_program).
    type: list
    elements: str
    required: true
  directory:
    description: Directory on the node, which C(python3) then runs.
    type: path
    required: true
"""

EXAMPLES = """
- name: Put a program on a node that prints what its GPUs are
  allreduce.gpu.config_files:
    files: "{{ query('allreduce.gpu.node_program', 'machine.gpu_fact_program', directory='/opt/gpu_fact') }}"
"""

RETURN = """
_raw:
  description: Files with C(path) and C(content).
  type: list
  elements: dict
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ..plugin_utils.launch.program import program_files


class LookupModule(LookupBase):
    """Adapter for Ansible."""

    def run(self, terms, variables=None, **kwargs):
        self.set_options(var_options=variables, direct=kwargs)
        try:
            return [file for term in terms for file in program_files(term, self.get_option("directory"))]
        except ValueError as error:
            raise AnsibleLookupError(str(error)) from error
