#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name, which does the work on the controller."""

DOCUMENTATION = r"""
module: service
short_description: Ensure the state of a service that node_state measures
version_added: 0.1.0
author:
  - The allreduce.gpu authors (@allreduce)
description:
  - Runs M(ansible.builtin.systemd_service) where the fact C(gpu_node_state) shows another state, and measures the node
    again. Where it already is in the requested state, nothing runs on the node.
  - A service that is to run is restarted where its unit has changed since systemd read it.
  - A service that does not exist counts as disabled and stopped, so check mode works before its package is installed.
options:
  name:
    description: Name of the service, one of those that M(allreduce.gpu.node_state) measures by default. Others are refused.
    type: str
    required: true
  enabled:
    description: Start the service at boot. By default this is not changed.
    type: bool
  state:
    description: State of the service. By default it is not changed.
    type: str
    choices: [started, stopped]
  daemon_reload:
    description:
      - Reload systemd's units first, even in the requested state, and restart a service that is to run.
      - Set it where a task has changed the unit after the node was measured.
    type: bool
    default: false
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
    description: Shows the state before and after.
    support: full
  facts:
    description: Returns the fact C(gpu_node_state) when it changed something.
    support: full
"""

EXAMPLES = r"""
- name: Enable and start the persistence daemon
  allreduce.gpu.service:
    name: nvidia-persistenced
    enabled: true
    state: started
"""

RETURN = r"""
ansible_facts:
  description: The state of the node after a change.
  returned: changed
  type: dict
  contains:
    gpu_node_state:
      description: As M(allreduce.gpu.node_state) returns it.
      type: dict
"""
