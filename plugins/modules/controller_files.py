#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

DOCUMENTATION = r"""
---
module: controller_files
short_description: Write locks and results on the controller
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Writes text files on the controller whose content differs, each as a whole. A run that is killed, a power cut or a full disk leaves the
    former content.
  - Runs on the controller only and needs no connection to a host. Missing directories are created.
options:
  files:
    description: The files.
    type: list
    elements: dict
    required: true
    suboptions:
      path:
        description: Path of the file on the controller. A new one can be read by all users.
        type: path
        required: true
      content:
        description: Its text.
        type: str
        required: true
attributes:
  check_mode:
    description: Predicts the change without making it.
    support: full
  diff_mode:
    description: Shows the text before and after.
    support: full
"""

EXAMPLES = r"""
- name: Write the results
  allreduce.gpu.controller_files:
    files:
      - path: "{{ inventory_dir }}/results.json"
        content: "{{ results | to_nice_json }}"
  run_once: true
"""

RETURN = r"""
problem:
  description: Why a file could not be written, for programs. Decide by C(code).
  returned: failure
  type: dict
  sample: {code: controller_disk_full, subject: /srv/cluster/stack.lock.yml}
"""
