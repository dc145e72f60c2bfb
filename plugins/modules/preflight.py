#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of this name, which does the work on the controller."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: preflight
short_description: Refuse invalid input before a node is contacted
version_added: 0.1.0
author: "The allreduce.gpu authors (@allreduce)"
description:
  - Checks the inventory, the limit, the tags and the variables of every host, and fails with one sentence for each problem.
    Run it in a play for the hosts V(localhost:all), which an empty inventory and a limited one both reach.
  - The group C(gpu_nodes) must have hosts, and a limit must leave one of them.
  - A variable whose name begins like the variables of a role of this collection must be one of that role. Where a role is
    called by an ordinary word, as in C(base_), a name in the inventory that resembles none only causes a warning.
    Names that begin with an underscore are private and are not looked at.
  - Values must be of the type that the role's argument specs declare, also the keys of dictionaries. Each distinct
    value is looked at once. A template is resolved for one host that has it; if that fails, O(measured) looks at it later.
  - The C(gpu_cluster_address) of each host must be an IP address that no other host has.
  - A tag on the command line must be one that a task of the playbook has.
options:
  ignore:
    description:
      - Names, or shell patterns of names, of variables that do not belong to this collection.
      - The variable C(preflight_ignore), set for any host or on the command line, adds to them.
    type: list
    elements: str
    default: []
  measured:
    description:
      - Judge only values that are templates, each for every host of the group C(gpu_nodes) in the play, whose facts are known now.
      - Playbook C(site) does so before it changes a node; its roles do not validate their arguments again.
    type: bool
    default: false
  exclusive:
    description:
      - Whether this is the only run that changes the nodes of the play. Another one that was started from this controller by the same
        user, and whose process still lives, is named in a problem. In check mode nothing is claimed.
      - Runs are noted in C(allreduce/runs) below Ansible's home directory, C(~/.ansible) as a rule.
    type: bool
    default: false
  planning:
    description:
      - Whether the plan follows at once, so that templates in the variables of role stack may use only what is defined by now, and facts.
      - The controller must then have what the plan is written with, and the directory of C(stack_lock).
    type: bool
    default: false
  training:
    description: Whether the C(train_) variables must describe a training that can start, with enough forks for its nodes.
    type: bool
    default: false
  benchmark:
    description: Whether the C(benchmark_) variables must describe a benchmark that can start, with enough forks for its nodes.
    type: bool
    default: false
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
  connection:
    description: Needs a connection to the host.
    support: none
"""

EXAMPLES = r"""
- name: Check the input
  hosts: localhost:all
  gather_facts: false
  tasks:
    - name: Refuse input that cannot be meant
      allreduce.gpu.preflight:
      tags: [always]

- name: Check the input, with another role whose variables have a similar name
  hosts: localhost:all
  gather_facts: false
  tasks:
    - name: Refuse input that cannot be meant
      allreduce.gpu.preflight:
        ignore:
          - nvidia_driver_skip_reboot
      tags: [always]
"""

RETURN = r"""
problems:
  description: What is wrong; C(msg) has a sentence for each.
  returned: always
  type: list
  elements: dict
  contains:
    code:
      description: Which kind of problem it is.
      type: str
      sample: misspelt_variable
    subject:
      description: The variable, host, address or tag that has the problem.
      type: str
      sample: nvidia_driver_brnach
checked:
  description: How many distinct names of variables were looked at.
  returned: always
  type: int
  sample: 214
"""
