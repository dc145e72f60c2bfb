#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

DOCUMENTATION = r"""
---
module: report
short_description: Write the acceptance report of a GPU cluster
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Reads what verification and training left in a directory on the controller and writes three files next to it.
  - "C(report.html): one page that needs no other file, no script and no network. It shows what each node is, what was
    planned and what is installed, a picture of its GPUs, switches, adapters and their links with the health of each
    GPU, every check with what was expected and measured, and training throughput over cluster sizes."
  - "C(report.json): the same as data, for programs."
  - "C(junit.xml): a test suite per node and a test case per check, as CI systems read it. A check with status unknown
    is skipped there, with its reason."
  - Runs on the controller only and needs no connection to a host.
options:
  directory:
    description:
      - The report directory on the controller. A relative path is relative to the playbook's directory.
      - It holds C(verify.json), and C(training/<run>/result.json) for every training run there was.
    type: path
    required: true
  title:
    description: The report's heading.
    type: str
    default: GPU cluster report
attributes:
  check_mode:
    description: Says which files would be written, and writes none.
    support: full
  diff_mode:
    description: Names the files that would be created or updated; their content is not compared line by line.
    support: partial
notes:
  - The same input gives the same files, byte for byte; the time on the page is the time of the newest input.
  - "C(report.json) has the keys C(format) (1), C(title), C(finished), C(inventory) (the name of its file), C(collection) (the version
    that verified), C(verdict) (C(status): passed, failed or incomplete; C(checks): numbers by status; C(sentences)), C(nodes)
    (C(name), C(address), C(description) with planned and installed items, C(checks), C(health) of the GPUs with its notes),
    C(cluster_checks), C(network), C(runs) (newest first), C(scaling) (per script the throughput, speedup and efficiency of each
    cluster size, and C(caveat): what they do not say, as where nodes share a machine), C(courses) (what the GPUs did over the
    time of the newest run that was watched; null where none was) and C(benchmark) (the newest one; null without any). The format
    number is raised when a key changes its meaning or goes, not when one is added."
  - In a play over many hosts, give the task C(run_once), because all of them would write the same files.
seealso:
  - name: The playbook allreduce.gpu.report
    description: Calls this action for the directory that the verify and train playbooks write to.
    link: https://github.com/allreduce/gpu
"""

EXAMPLES = r"""
- name: Write the report of the cluster
  allreduce.gpu.report:
    directory: "{{ inventory_dir }}/.reports"
    title: Cluster A, acceptance of November 2026
  run_once: true
  register: cluster_report

- name: Stop when something failed
  ansible.builtin.assert:
    that: cluster_report.verdict.status == "passed"
    fail_msg: "{{ cluster_report.verdict.sentences | join(' ') }}"
  run_once: true
"""

RETURN = r"""
directory:
  description: The report directory as an absolute path.
  returned: success
  type: str
  sample: /home/admin/cluster/.reports
files:
  description: The three files, whether they had to be written or not.
  returned: success
  type: list
  elements: str
  sample: [/home/admin/cluster/.reports/report.html]
verdict:
  description: What was achieved.
  returned: success
  type: dict
  contains:
    status:
      description:
        - V(failed) when a check or the newest training run of a script on a number of nodes failed.
        - V(incomplete) when a check is unknown, something is not installed as planned, or there are no checks or runs.
        - V(passed) otherwise.
      returned: success
      type: str
      sample: passed
    sentences:
      description: The same in numbers, one sentence each.
      returned: success
      type: list
      elements: str
      sample: ["2 nodes, 24 checks: 24 passed and 0 failed."]
"""
