#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name, which does the work on the controller."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: cluster_plan
short_description: Plan the stacks of all nodes of a play at once
version_added: 0.1.0
author: "The allreduce.gpu authors (@allreduce)"
description:
  - Asks the resolver for every host of the play what M(allreduce.gpu.resolve_stack) would, from the variables C(gpu_stack_request)
    and C(gpu_stack_profile) and from the host's facts; for a host without facts, from C(gpu_stack_host).
  - Hosts that ask the same are resolved once.
  - Fails where the names or addresses of measured hosts keep them from forming a cluster. A host without a stack is part of the result.
  - Role stack runs it with C(tasks_from=plan); playbook C(plan) is how to make and record a plan.
options:
  lock:
    description: Path of the lock file. Without one, every host is resolved from the tables.
    type: path
  renew:
    description: Whether to ignore the lock and resolve again.
    type: bool
    default: false
  explain:
    description: Component whose version is explained for every kind of host.
    type: str
attributes:
  action:
    description: Runs on the controller.
    support: full
  bypass_host_loop:
    description: Runs once for all hosts of a play.
    support: full
  check_mode:
    description: Can run in check mode, where it does the same.
    support: full
  diff_mode:
    description: Returns what would change.
    support: none
    details: It changes nothing.
"""

EXAMPLES = r"""
- name: Plan the nodes
  allreduce.gpu.cluster_plan:
    explain: pytorch
  register: planned
  run_once: true

- name: Show the plan
  ansible.builtin.debug:
    msg: "{{ planned.lines }}"
  run_once: true
"""

RETURN = r"""
plan:
  description:
    - C(stacks), for every kind its C(hosts), C(stack) and the C(answers) that came to it; C(refused), with C(hosts), C(system), C(gpus), C(reasons),
      C(instead), a request that works, and C(levels), for each reason C(what) is wrong, C(why), and a C(fix); C(shortages), sentences
      about disks that are too small; C(obstacles), sentences about anything else that prevents the driver from working; C(levels) of
      both; and C(warnings), other sentences about single hosts.
  returned: success
  type: dict
lines:
  description: The plan as text for a terminal of 80 columns.
  returned: success
  type: list
  elements: str
lock:
  description: What the lock file has to hold with this plan; empty without O(lock).
  returned: success
  type: str
"""
