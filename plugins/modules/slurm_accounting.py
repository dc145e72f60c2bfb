#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: slurm_accounting
short_description: Keep QoS, accounts and users of a Slurm cluster as declared
version_added: 0.1.0
description:
  - Runs C(sacctmgr) on a host of a cluster with C(slurmdbd), for what differs from the declaration, and reads again what was done.
  - >-
      Names that it made are recorded in C(/var/lib/allreduce/slurm_accounting.json). They are deleted once they are no longer declared. What
      others made stays, and so does what was there before it was declared, which is then only brought to the declaration.
  - >-
      Of what is declared, it keeps every limit that it has an option for: one that is not given is taken away. Other limits, such as those of
      processors, stay as they are.
author: "The allreduce.gpu authors (@allreduce)"
attributes:
  check_mode:
    description: Predicts changes without making them. Where C(sacctmgr) does not answer yet, nothing counts as there.
    support: full
  diff_mode:
    description: Shows a line for each QoS, account and user of an account.
    support: full
options:
  cluster:
    description: Name of the cluster in the accounting.
    type: str
    required: true
  qos:
    description: Qualities of service.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name, in lower case.
        type: str
        required: true
      priority:
        description: Priority, V(0) by default.
        type: int
      max_minutes:
        description: Longest time of a job in minutes.
        type: int
      gpus:
        description: GPUs of all its running jobs together.
        type: int
      gpus_per_user:
        description: GPUs of the running jobs of one user.
        type: int
      jobs_per_user:
        description: Running jobs of one user.
        type: int
      preempts:
        description: QoS whose jobs may be ended for its jobs.
        type: list
        elements: str
  accounts:
    description: Accounts.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name, in lower case.
        type: str
        required: true
      parent:
        description: Account above, among those declared. By default V(root).
        type: str
      shares:
        description: Shares among the accounts with the same parent, V(1) by default.
        type: int
      users:
        description: Its users. The first account that names a new user is that user's default account.
        type: list
        elements: str
      gpus:
        description: GPUs of all running jobs of the account and those below it.
        type: int
      gpus_per_job:
        description: GPUs of one job.
        type: int
      qos:
        description: QoS that its jobs may have. By default those of the account above.
        type: list
        elements: str
      default_qos:
        description: QoS of a job that names none, one of O(accounts[].qos).
        type: str
  wait:
    description: Seconds to wait for C(slurmctld) to register a new cluster and its GPUs.
    type: int
    default: 60
"""

EXAMPLES = r"""
- name: Let each user have four GPUs at a time
  allreduce.gpu.slurm_accounting:
    cluster: cluster
    qos:
      - {name: normal, gpus_per_user: 4}
    accounts:
      - {name: physics, users: [ada, bob]}
"""

RETURN = r"""
commands:
  description: Arguments of C(sacctmgr) for each change.
  returned: success
  type: list
  elements: list
  sample: [[modify, qos, where, name=normal, set, MaxTRESPerUser=gres/gpu=4]]
"""

import time
from collections import namedtuple

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host.ansible_module import program_runner
from ..module_utils.machine.files import FileTree
from ..module_utils.settings.slurm_accounting import settle

NAMES = {"type": "list", "elements": "str"}
QOS = {
    "name": {"type": "str", "required": True},
    "priority": {"type": "int"},
    "max_minutes": {"type": "int"},
    "gpus": {"type": "int"},
    "gpus_per_user": {"type": "int"},
    "jobs_per_user": {"type": "int"},
    "preempts": NAMES,
}
ACCOUNT = {
    "name": {"type": "str", "required": True},
    "parent": {"type": "str"},
    "shares": {"type": "int"},
    "users": NAMES,
    "gpus": {"type": "int"},
    "gpus_per_job": {"type": "int"},
    "qos": NAMES,
    "default_qos": {"type": "str"},
}
SPEC = {
    "cluster": {"type": "str", "required": True},
    "qos": {"type": "list", "elements": "dict", "default": [], "options": QOS},
    "accounts": {"type": "list", "elements": "dict", "default": [], "options": ACCOUNT},
    "wait": {"type": "int", "default": 60},
}
Machine = namedtuple("Machine", "tree run sleep")


def main():
    """Read the options, settle, answer."""
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True)
    machine = Machine(FileTree("/"), program_runner(module), time.sleep)
    try:
        answer = settle(module.params, machine, module.check_mode)
    except (EnvironmentError, ValueError, KeyError, TypeError) as error:
        module.fail_json(msg="Slurm's accounting is not as declared: %s." % error)
    if answer["unread"]:
        module.warn(
            "Slurm's accounting cannot be read yet, so that everything declared counts as new: %s." % answer["unread"]
        )
    diff = {key: "".join(line + "\n" for line in answer[key]) for key in ("before", "after")}
    module.exit_json(
        changed=answer["changed"],
        commands=answer["commands"],
        diff=dict(diff, before_header="sacctmgr", after_header="sacctmgr"),
    )


if __name__ == "__main__":
    main()
