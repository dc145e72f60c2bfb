# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: what keeps measured nodes from forming a cluster."""

from __future__ import annotations

DOCUMENTATION = """
name: _cluster_problems
short_description: List the problems that keep measured nodes from forming a cluster
author: The allreduce.gpu authors (@allreduce)
description:
  - Names the nodes without a host name or an address of their own, once their facts are gathered.
positional: hostvars
options:
  _input:
    description: Names of the hosts.
    type: list
    elements: str
    required: true
  hostvars:
    description: The variables of all hosts.
    type: dict
    required: true
"""

EXAMPLES = """
- name: Show which nodes the others could not tell apart
  ansible.builtin.debug:
    msg: "{{ ansible_play_hosts_all | allreduce.gpu._cluster_problems(hostvars) }}"
  run_once: true
"""

RETURN = """
_value:
  description: One sentence for each problem, none where the nodes can form a cluster.
  type: list
  elements: str
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ..plugin_utils.cluster.hosts import cluster_problems
from ..plugin_utils.problems.text import describe


def sentences(hosts, hostvars):
    """Return what is wrong with the hosts' names and addresses."""
    return [describe(problem) for problem in cluster_problems({host: hostvars[host] for host in hosts})]


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"_cluster_problems": sentences}
