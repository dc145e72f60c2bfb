# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: a text of a node, without what would command a terminal."""

from __future__ import annotations

DOCUMENTATION = """
name: _plain
short_description: Remove terminal sequences and control characters from a text
author: The allreduce.gpu authors (@allreduce)
description:
  - Ansible prints the message of a failure as it is, and what a node's program printed may be in it.
options:
  _input:
    description: A text.
    type: str
    required: true
"""

EXAMPLES = """
- name: Show what a program printed
  ansible.builtin.debug:
    msg: "{{ result.stdout | allreduce.gpu._plain }}"
"""

RETURN = """
_value:
  description: The text, with newlines and tabs.
  type: str
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ..plugin_utils.problems.phrases import clean


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"_plain": lambda text: clean(str(text))}
