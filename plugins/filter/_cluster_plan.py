# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the plan of all hosts."""

from __future__ import annotations

DOCUMENTATION = """
name: _cluster_plan
short_description: Resolve the stacks of many nodes, each kind of node once
author: The allreduce.gpu authors (@allreduce)
description:
  - Asks the resolver for every host what M(allreduce.gpu.resolve_stack) would, from the variables C(gpu_stack_request)
    and C(gpu_stack_profile) and from the host's facts; for a host without facts, from C(gpu_stack_host).
  - Hosts that ask the same are resolved once.
positional: hostvars, lock, renew, explain
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
  lock:
    description: Path of the lock file; empty for none.
    type: path
    default: ""
  renew:
    description: Whether to ignore the lock and resolve again.
    type: bool
    default: false
  explain:
    description: Component whose version is explained for every kind of host; empty for none.
    type: str
    default: ""
"""

EXAMPLES = """
- name: Show what would be refused
  ansible.builtin.debug:
    msg: "{{ (ansible_play_hosts_all | allreduce.gpu._cluster_plan(hostvars)).refused }}"
  run_once: true
"""

RETURN = """
_value:
  description:
    - C(stacks), for every kind its C(hosts), C(stack) and the C(answers) that came to it; C(refused), with C(hosts), C(system), C(gpus), C(reasons) and
      what works C(instead); C(shortages), sentences about disks that are too small; C(obstacles), sentences about what
      keeps the driver from working; and C(warnings), other sentences about single hosts.
  type: dict
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ansible.errors import AnsibleFilterError
from ansible.release import __version__

from ..plugin_utils.planning.plan import plan
from ..plugin_utils.problems.problem import ProblemError
from ..plugin_utils.problems.text import describe_all


def cluster_plan(hosts, hostvars, lock="", renew=False, explain=""):
    """Return the plan of these hosts."""
    try:
        return plan({host: hostvars[host] for host in hosts}, __version__, lock or None, renew, explain)
    except ProblemError as error:
        raise AnsibleFilterError(describe_all(error.problems)) from None


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"_cluster_plan": cluster_plan}
