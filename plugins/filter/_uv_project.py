# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the project file that uv solves."""

from __future__ import annotations

DOCUMENTATION = """
name: _uv_project
short_description: Write the pyproject.toml that uv solves for an environment
author: The allreduce.gpu authors (@allreduce)
description:
  - Has the requirements of an environment, and binds frameworks to the wheel index of their own, if there is one.
options:
  _input:
    description: An environment with C(name), C(python), C(requirements) and C(index).
    type: dict
    required: true
"""

EXAMPLES = """
- name: Write what to solve
  ansible.builtin.copy:
    content: "{{ ansible_facts.gpu_stack.environments[0] | allreduce.gpu._uv_project }}"
    dest: pyproject.toml
    mode: "0600"
"""

RETURN = """
_value:
  description: Text of the file.
  type: str
"""

from ..plugin_utils.environments.project import project  # noqa: E402


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"_uv_project": project}
