# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: which host compiles each build of Horovod."""

from __future__ import annotations

DOCUMENTATION = r"""
name: _build_plan
short_description: Decide which node compiles each build, and which nodes receive the wheel
author: "The allreduce.gpu authors (@allreduce)"
description:
  - For each distinct build, the first host that has its wheel gives it to the others; without any, the first host that asks for it
    compiles it.
positional: hostvars, variable
options:
  _input:
    description: Names of the hosts, in order.
    type: list
    elements: str
    required: true
  hostvars:
    description: The variables of all hosts.
    type: dict
    required: true
  variable:
    description: Name of the variable that holds what P(allreduce.gpu._horovod_builds#filter) gave on each host.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Choose the node that compiles each build
  ansible.builtin.set_fact:
    plan: "{{ ansible_play_hosts | allreduce.gpu._build_plan(hostvars, 'builds') }}"
  run_once: true
"""

RETURN = r"""
_value:
  description: For each digest of a build host, environment, wheel and receivers.
  type: dict
"""

from ..plugin_utils.environments.builds import assign_builds  # noqa: E402


def build_plan(hosts, hostvars, variable):
    """Collect the variable of the hosts that have it."""
    return assign_builds({host: hostvars[host][variable] for host in hosts if variable in hostvars[host]})


class FilterModule:
    """The filter of this file."""

    def filters(self):
        """Return {name: function}."""
        return {"_build_plan": build_plan}
