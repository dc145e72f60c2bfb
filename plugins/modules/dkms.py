#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name, which does the work on the controller."""

DOCUMENTATION = r"""
module: dkms
short_description: Build the driver's kernel module for all kernels that need it
version_added: 0.1.0
author:
  - The allreduce.gpu authors (@allreduce)
description:
  - >-
      The packages of a driver build its module when they are installed. This module is for kernels that were installed later, interrupted builds, and
      kernels that still have an older version.
  - >-
      Missing builds are found by comparing the facts C(gpu_stack) and C(gpu_node_state), for the running kernel and the one that the next boot uses.
      Where none is missing, nothing runs on the node.
  - A failure is reported in one sentence, with the last lines of the compiler's log.
options: {}
attributes:
  action:
    description: Runs on the controller, and modules on the node.
    support: full
  async:
    description: Runs in the background.
    support: none
  check_mode:
    description: Predicts changes without making them.
    support: full
  diff_mode:
    description: Shows the modules that are built.
    support: full
  facts:
    description: Returns the fact C(gpu_node_state) when it changed something.
    support: full
"""

EXAMPLES = r"""
- name: Build the driver's kernel module where it is missing
  allreduce.gpu.dkms:
"""

RETURN = r"""
kernels:
  description: Kernels that the module was built for, or would be in check mode.
  returned: when the stack has a module to build
  type: list
  elements: str
  sample: [6.1.0-40-amd64]
ansible_facts:
  description: The state of the node after a change.
  returned: changed
  type: dict
  contains:
    gpu_node_state:
      description: As M(allreduce.gpu.node_state) returns it.
      type: dict
cause:
  description: Code of what went wrong, such as V(dkms_build_failed) or V(no_kernel_headers).
  returned: failure
  type: str
remedy:
  description: What to do; empty where the cause is not known.
  returned: failure
  type: str
output:
  description: The last lines that the step that failed printed.
  returned: failure
  type: str
"""
