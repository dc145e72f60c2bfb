#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

DOCUMENTATION = r"""
---
module: show
short_description: Print lines as text, however Ansible formats results
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Prints plans, findings and measurements. M(ansible.builtin.debug) prints a list as JSON or YAML, as the configuration says, in which
    sentences are quoted, escaped or cut.
  - Runs on the controller only and needs no connection to a host. Prints nothing where standard output is JSON for programs; these find
    the lines in the result.
options:
  lines:
    description: What to print, one line each. Terminal sequences and control characters are removed.
    type: list
    elements: str
    default: []
  errors:
    description: What to refuse with, printed below each other in lines of at most 80 columns. The task fails where there is one.
    type: list
    elements: dict
    default: []
    suboptions:
      what:
        description: What is wrong, without a full stop.
        type: str
        required: true
      why:
        description: The cause.
        type: str
        default: ""
      fix:
        description: What to do, as an imperative.
        type: str
        default: ""
attributes:
  check_mode:
    description: Prints the same.
    support: full
  diff_mode:
    description: Changes nothing.
    support: none
"""

EXAMPLES = r"""
- name: Show the verdict of the report
  allreduce.gpu.show:
    lines: "{{ cluster_report.verdict.sentences }}"
  run_once: true
"""

RETURN = r"""
lines:
  description: What was printed.
  returned: always
  type: list
  elements: str
  sample: ["2 nodes, 24 checks: 24 passed and 0 failed."]
"""
