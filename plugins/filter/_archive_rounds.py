# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: who gets an environment from whom."""

from __future__ import annotations

DOCUMENTATION = r"""
name: _archive_rounds
short_description: Decide from which node each one receives a Python environment
author: "The allreduce.gpu authors (@allreduce)"
description:
  - For each environment, the first host on which it is installed gives it to the others; without any, the first host that asks for
    it, once it has installed it. Each host that has got it gives it to others in the next round.
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
  enabled:
    description: Whether hosts give environments to each other at all.
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Choose the node that each environment is copied from
  ansible.builtin.set_fact:
    archives: "{{ ansible_play_hosts | allreduce.gpu._archive_rounds(hostvars, 'environments') }}"
  run_once: true
"""

RETURN = r"""
_value:
  description:
    - For each environment by its name C(packers), the hosts that pack it, and C(rounds), a list of dictionaries of the hosts that
      get it then, each with C(source), C(address) of the source, C(packer), and C(keep), whether others get it from there later.
  type: dict
"""

from ..plugin_utils.cluster.address import cluster_address  # noqa: E402
from ..plugin_utils.environments.distribution import distribution  # noqa: E402


def archive_rounds(hosts, hostvars, variable, enabled=True):
    """Collect the variable of the hosts that have it, and their addresses."""
    described = {host: hostvars[host][variable] for host in hosts if variable in hostvars[host]}
    return distribution(described, {host: cluster_address(hostvars[host]) if enabled else None for host in described})


class FilterModule:
    """The filter of this file."""

    def filters(self):
        """Return {name: function}."""
        return {"_archive_rounds": archive_rounds}
