# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: which host's lock serves each request."""

from __future__ import annotations

DOCUMENTATION = r"""
name: _lock_plan
short_description: Choose the node whose lock serves each requested Python environment
author: "The allreduce.gpu authors (@allreduce)"
description:
  - For each distinct request, the first host with a valid lock serves all others; without any, the first host that asks
    is to solve it.
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
    description: Name of the variable that holds what P(allreduce.gpu._environment_locks#filter) gave on each host.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Choose locks
  ansible.builtin.set_fact:
    plan: "{{ ansible_play_hosts | allreduce.gpu._lock_plan(hostvars, 'environments') }}"
  run_once: true
"""

RETURN = r"""
_value:
  description: For each digest of a request the host, and the lock, which is empty while it is to be solved.
  type: dict
"""

from ..plugin_utils.environments.locks import assign  # noqa: E402


def lock_plan(hosts, hostvars, variable):
    """Collect the variable of the hosts that have it."""
    return assign({host: hostvars[host][variable] for host in hosts if variable in hostvars[host]})


class FilterModule:
    """The filter of this file."""

    def filters(self):
        """Return {name: function}."""
        return {"_lock_plan": lock_plan}
