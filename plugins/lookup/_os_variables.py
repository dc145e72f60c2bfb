# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup: the files with what is particular to the operating system, of the role of the task."""

from __future__ import annotations

DOCUMENTATION = """
name: _os_variables
short_description: List the files with the variables of an operating system
author: The allreduce.gpu authors (@allreduce)
description:
  - Files in C(vars) of the role of the task that are named after the family, its release, the distribution and its release
    in the fact C(gpu_stack), such as C(el.yml), C(el-8.yml), C(centos.yml) and C(centos-8.yml), from the general to the
    particular.
  - Clones need no file of their own. An operating system for which the role has none is refused.
options:
  advice:
    description: What to do about a system that the role does not know; the end of the sentence that refuses it.
    type: str
    default: use one that the documentation of the stack lists
"""

EXAMPLES = """
- name: Load what is particular to the operating system
  ansible.builtin.include_vars: "{{ item }}"
  loop: "{{ query('allreduce.gpu._os_variables') }}"
"""

RETURN = """
_raw:
  description: Paths of the files.
  type: list
  elements: path
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from pathlib import Path

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase


def variable_files(role, system):
    """Return the paths of the files that ROLE, a directory, has for a system, ``{family, id, version}``."""
    names = dict.fromkeys(
        name for name in (system["family"], system["id"]) for name in (name, f"{name}-{system['version']}")
    )
    paths = [Path(role) / "vars" / f"{name}.yml" for name in names]
    return [str(path) for path in paths if path.is_file()]


class LookupModule(LookupBase):
    """Adapter for Ansible."""

    def run(self, terms, variables=None, **kwargs):
        self.set_options(var_options=variables, direct=kwargs)
        role, system = variables["role_path"], variables["ansible_facts"]["gpu_stack"]["os"]
        files = variable_files(role, system)
        if not files:
            raise AnsibleLookupError(
                f"Role {Path(role).name} does not know the operating system {system['id']} {system['version']}: "
                f"{self.get_option('advice')}."
            )
        return files
