#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of this name, which does the work on the controller."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: check_variables
short_description: Find misspelt role variables
version_added: 0.1.0
author: "The allreduce.gpu authors (@allreduce)"
description:
  - Looks at the names of the variables of every host in the inventory and of the play.
    A name that begins like the variables of a role of this collection, and which that role does not declare, is reported
    with the nearest declared name and the hosts or the group it is set for.
  - The task fails when a declared name is near, or when the beginning is distinctive, as in C(nvidia_driver_).
    Names that begin with an ordinary word, as in C(base_), and resemble nothing only cause a warning.
  - Names that begin with an underscore are private and are not looked at. Values are never looked at.
options:
  ignore:
    description:
      - Names, or shell patterns of names, that belong to something else than this collection.
    type: list
    elements: str
    default: []
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
- name: Find misspelt role variables
  allreduce.gpu.check_variables:

- name: Find misspelt role variables beside another role with a similar name
  allreduce.gpu.check_variables:
    ignore:
      - nvidia_driver_skip_reboot
"""

RETURN = r"""
unknown:
  description: What was found, sorted by name.
  returned: always
  type: list
  elements: dict
  contains:
    name:
      description: The name of the variable.
      type: str
      sample: nvidia_driver_brnach
    role:
      description: The role it seems to be meant for. Null when only the whole name resembles a declared one.
      type: str
      sample: nvidia_driver
    nearest:
      description: The nearest declared name, or null.
      type: str
      sample: nvidia_driver_branch
    fatal:
      description: Whether it made the task fail.
      type: bool
      sample: true
    message:
      description: The finding as a sentence.
      type: str
      sample: "Unknown variable nvidia_driver_brnach (set for group gpu_nodes): did you mean nvidia_driver_branch?"
checked:
  description: How many distinct names were looked at.
  returned: always
  type: int
  sample: 214
"""
