# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the plan of many hosts as text."""

DOCUMENTATION = """
name: _plan_table
short_description: Format the plan of many nodes as lines of text
author: The allreduce.gpu authors (@allreduce)
description:
  - Says what each kind of host gets, and why, or why it is refused, in lines for a terminal of 80 columns.
options:
  _input:
    description: The plan, as P(allreduce.gpu._cluster_plan#filter) returns it.
    type: dict
    required: true
"""

EXAMPLES = """
- name: Show the plan
  ansible.builtin.debug:
    msg: "{{ ansible_play_hosts_all | allreduce.gpu._cluster_plan(hostvars) | allreduce.gpu._plan_table }}"
  run_once: true
"""

RETURN = """
_value:
  description: Lines of text.
  type: list
  elements: str
"""

from ..plugin_utils.planning.plan_text import plan_table  # noqa: E402 (sanity wants the documentation first)


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"_plan_table": plan_table}
