#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: scratch_facts
short_description: Measure disks and the cache for training data on them
version_added: 0.1.0
description:
  - Returns, for every whole disk, what was found on it that rules out using it, and the state of the scratch file system.
  - Never changes the node.
author: "The allreduce.gpu authors (@allreduce)"
attributes:
  check_mode:
    description: Runs in check mode exactly as otherwise.
    support: full
  facts:
    description: Returns a fact.
    support: full
options:
  disks:
    description: As for M(allreduce.gpu.scratch).
    type: list
    elements: str
    default: []
  count:
    description: As for M(allreduce.gpu.scratch).
    type: int
    default: 0
  minimum_gb:
    description: As for M(allreduce.gpu.scratch).
    type: int
    default: 0
  mount_point:
    description: As for M(allreduce.gpu.scratch).
    type: str
    default: /scratch
"""

EXAMPLES = r"""
- name: See which disks could be taken
  allreduce.gpu.scratch_facts:
  become: true
"""

RETURN = r"""
ansible_facts:
  description: The fact.
  returned: success
  type: dict
  contains:
    gpu_scratch:
      description:
        - The disks with what was C(seen) on each, as records of C(code), C(subject) and C(detail), and the scratch.
        - C(left) says why the node gets none, C(refused) what keeps it from one, C(packages) what creating it needs.
      returned: success
      type: dict
      sample:
        container: false
        recorded: true
        left: null
        refused: []
        disks: [{device: /dev/nvme1n1, kind: nvme, size: 1920383410176, model: SAMSUNG MZQL21T9HCJR-00A07, serial: S64GNE0R500001, taken: true, seen: []}]
        expected: 2
        members: [/dev/nvme1n1, /dev/nvme2n1]
        array: /dev/md/scratch
        device: /dev/md127
        mounted: {source: /dev/md127, type: xfs, options: [noatime, rw], ours: true, owner: 'trainer:trainer', mode: '0755'}
        trim: true
        packages: []
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host.ansible_module import program_output
from ..module_utils.machine.files import FileTree
from ..module_utils.storage import reading, record
from ..module_utils.storage.facts import scratch_fact


def main():
    """Read the options, measure, answer."""
    module = AnsibleModule(
        argument_spec={
            "disks": {"type": "list", "elements": "str", "default": []},
            "count": {"type": "int", "default": 0},
            "minimum_gb": {"type": "int", "default": 0},
            "mount_point": {"type": "str", "default": "/scratch"},
        },
        supports_check_mode=True,
    )
    given, tree = module.params, FileTree("/")
    wanted = {"disks": given["disks"], "count": given["count"], "minimum": given["minimum_gb"] * 1000**3}
    wanted["mount_point"] = "/" + given["mount_point"].strip("/")
    try:
        known = record.load(tree)
        seen = reading.read(tree, program_output(module, "/"), wanted["disks"], wanted["mount_point"])
        fact = scratch_fact(wanted, seen, known, tree.exists(record.PATH))
    except (EnvironmentError, ValueError) as error:
        module.fail_json(msg="The scratch cannot be measured: %s." % error)
    module.exit_json(changed=False, ansible_facts={"gpu_scratch": fact})


if __name__ == "__main__":
    main()
