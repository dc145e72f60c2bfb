# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the cause of a failed apt or dnf, and what to do."""

from __future__ import annotations

DOCUMENTATION = r"""
name: _package_problem
short_description: Explain why apt or dnf failed
author: "The allreduce.gpu authors (@allreduce)"
description:
  - Recognizes the causes a user can do something about, such as a signature by another key, an incomplete mirror, a full
    disk or a lock, and names what to change. Of other failures the text is the message.
positional: holder
options:
  _input:
    description: The failed result, as a rescue has it in C(ansible_failed_result).
    type: dict
    required: true
  holder:
    description: Which process holds the package manager's lock, as C(ansible_facts.gpu_node_state.package_manager_holder) has it.
    type: dict
  source:
    description: Address of NVIDIA's repository, where the failure names no other.
    type: str
"""

EXAMPLES = r"""
- name: Stop with one sentence
  ansible.builtin.fail:
    msg: "The packages could not be installed: {{ (ansible_failed_result | allreduce.gpu._package_problem).text }}."
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
      description: Cause and remedy in half a sentence, to follow what was being done; without its full stop.
      type: str
"""

from ..plugin_utils.packages.messages import explain  # noqa: E402


class FilterModule:
    """The filter of this file."""

    def filters(self):
        """Name and function."""
        return {"_package_problem": explain}
