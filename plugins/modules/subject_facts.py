#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name, which does the work on the controller."""

DOCUMENTATION = r"""
module: subject_facts
short_description: Measure the settings that roles are to apply to a node
version_added: 0.1.0
author:
  - The allreduce.gpu authors (@allreduce)
description:
  - For each role of M(allreduce.gpu.subject) whose state is V(present), or V(external) for role P(allreduce.gpu.slurm#role), runs the
    module that measures its settings, such as M(allreduce.gpu.tuning_facts). Nothing runs on the node for the others.
options:
  user:
    description: User whose limits and environment are measured.
    type: str
    required: true
attributes:
  action:
    description: Runs on the controller, and modules on the node.
    support: full
  async:
    description: Runs in the background.
    support: none
  check_mode:
    description: Measures in check mode, too.
    support: full
  diff_mode:
    description: Shows differences.
    support: none
  facts:
    description: Returns the facts of the modules that it runs.
    support: full
"""

EXAMPLES = r"""
- name: Measure what is to be verified
  allreduce.gpu.subject_facts:
    user: trainer
"""

RETURN = r"""
ansible_facts:
  description: Facts such as C(gpu_tuning) and C(gpu_qos), as the modules that measure them return them.
  returned: success
  type: dict
"""
