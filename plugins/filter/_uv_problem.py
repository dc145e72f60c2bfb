# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the cause of a failed uv or pip, and what to do."""

from __future__ import annotations

DOCUMENTATION = r"""
name: _uv_problem
short_description: Explain why uv or pip failed
author: "The allreduce.gpu authors (@allreduce)"
description:
  - Recognizes the causes a user can do something about, such as a full disk, a missing wheel or an unknown certificate,
    and names what to change. Names and passwords in addresses are left out.
positional: what
options:
  _input:
    description: Standard error of the failed program.
    type: str
    required: true
  what:
    description: What was being done, as the beginning of the sentence.
    type: str
    required: true
  index_url:
    description: The package index that was searched, empty for the default one.
    type: str
    default: ""
  find_links:
    description: Wheel directories that were looked at.
    type: list
    elements: str
    default: []
  no_index:
    description: Whether no index was searched.
    type: bool
    default: false
  wheel_index:
    description: The framework's own index, if one was searched.
    type: str
"""

EXAMPLES = r"""
- name: Stop with one sentence
  ansible.builtin.fail:
    msg: "{{ (result.stderr | allreduce.gpu._uv_problem('Cannot create environment main')).text }}"
"""

RETURN = r"""
_value:
  description: The failure, explained.
  type: dict
  contains:
    cause:
      description: Code of the cause, V(unknown) where it is not known.
      type: str
      sample: disk_full
    remedy:
      description: What to do; empty where the cause is not known.
      type: str
    text:
      description: What was being done, cause and remedy in one sentence.
      type: str
"""

from ..plugin_utils.environments.uv_messages import explain  # noqa: E402


class FilterModule:
    """The filter of this file."""

    def filters(self):
        """Return {name: function}."""
        return {"_uv_problem": explain}
