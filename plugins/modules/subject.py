#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name, which does the work on the controller."""

DOCUMENTATION = r"""
module: subject
short_description: Bring the settings of a node to what the variables of a role ask for
version_added: 0.1.0
author:
  - The allreduce.gpu authors (@allreduce)
description:
  - Measures the settings on the node, derives what they are to be from the variables of the role and from facts, refuses what cannot be
    applied, installs packages that are needed for it, and applies the rest.
  - Where a measurement shows that the same was applied already and still holds, nothing further runs on the node.
options:
  name:
    description: Role whose settings these are.
    type: str
    required: true
  state:
    description: V(present) applies them. Another state is passed to the module that applies them; V(absent) restores the previous state.
    type: str
    default: present
  boot:
    description: Files that apply the settings again at boot, as in O(allreduce.gpu.tuning#module:files).
    type: list
    elements: dict
    default: []
  install_recommends:
    description: Install packages that apt recommends. By default apt's configuration decides.
    type: bool
  options:
    description: Further options of the module that applies the settings.
    type: dict
    default: {}
  others:
    description: What the settings depend on of other hosts. One task gathers it for all hosts.
    type: dict
    default: {}
  packages:
    description: Packages to install first, on a node to which the settings apply.
    type: list
    elements: raw
    default: []
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
    description: Shows what changes.
    support: full
  facts:
    description: Returns the fact that was measured.
    support: full
"""

EXAMPLES = r"""
- name: Tune the node
  allreduce.gpu.subject:
    name: tuning
"""

RETURN = r"""
applies:
  description: Whether there is anything for these settings on the node, such as an adapter.
  returned: with O(state=present)
  type: bool
notes:
  description: Sentences about settings that the node keeps, and why.
  returned: with O(state=present)
  type: list
  elements: str
changes:
  description: The steps, each with C(kind) and C(subject).
  returned: success
  type: list
  elements: dict
reboot:
  description: Whether a setting takes effect after a reboot only.
  returned: where the module that applies the settings tells it
  type: bool
sentences:
  description: What was seen on disks that are not used.
  returned: for role scratch
  type: list
  elements: str
findings:
  description: Why a step failed, for programs. Decide by C(code).
  returned: where the module that applies the settings tells it
  type: list
  elements: dict
"""
