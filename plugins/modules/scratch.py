#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: scratch
short_description: Create a cache for training data on blank disks, or remove it
version_added: 0.1.0
description:
  - Creates an XFS file system on one whole blank disk, or on a RAID0 of several, and mounts it by UUID.
  - A disk with a partition, a signature, a holder, a mount or anything else on it is never used or wiped. What was found on each disk is reported.
  - >-
      What is created is first recorded in C(/var/lib/allreduce/scratch.json). It is recreated on other disks only when they are as many, of the same
      sizes and models, and all blank, as after a cloud has stopped and started an instance.
author: "The allreduce.gpu authors (@allreduce)"
attributes:
  check_mode:
    description: Predicts changes without making them.
    support: full
  diff_mode:
    description: Shows what changes in each file, and each other step.
    support: full
options:
  state:
    description:
      - >-
          V(absent) unmounts the file system, which is refused while it is in use, stops its array and removes its lines from the node's files. The
          data stays on the disks, and V(present) mounts it again.
    type: str
    choices: [present, absent]
    default: present
  disks:
    description: Paths of whole disks, all of them blank. An empty list selects every blank local NVMe disk.
    type: list
    elements: str
    default: []
  count:
    description: Required number of disks. V(0) accepts any number, and skips a node without a blank disk.
    type: int
    default: 0
  minimum_gb:
    description: Required total size of the disks in GB (1000³ bytes).
    type: int
    default: 0
  name:
    description: Name of the array below C(/dev/md).
    type: str
    default: scratch
  mount_point:
    description: Absolute path of the mount point.
    type: str
    default: /scratch
  options:
    description: Mount options. V(nofail) is always added.
    type: list
    elements: str
    default: [noatime, nofail]
  chunk_kib:
    description: Chunk size of the array in KiB.
    type: int
    default: 512
  owner:
    description: User who owns the top directory of the file system.
    type: str
    default: root
  group:
    description: Group of the top directory. Empty selects that of the user.
    type: str
    default: ''
  mode:
    description: Permissions of the top directory, four octal digits in quotes.
    type: str
    default: '0755'
  trim:
    description: Enable C(fstrim.timer), which discards unused blocks every week.
    type: bool
    default: true
  destroy_data:
    description: With O(state=absent), also remove the signatures from the array and its disks, so that they are blank.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Make a scratch of two disks
  allreduce.gpu.scratch:
    disks: [/dev/disk/by-id/nvme-SAMSUNG_MZQL21T9HCJR-00A07_S64GNE0R500001, /dev/disk/by-id/nvme-SAMSUNG_MZQL21T9HCJR-00A07_S64GNE0R500002]
    owner: trainer
  become: true

- name: Take it down, and keep the data
  allreduce.gpu.scratch:
    state: absent
  become: true
"""

RETURN = r"""
changes:
  description: The steps, each with C(kind), C(subject), C(before), C(after) and C(command).
  returned: success, and when the node refuses a step
  type: list
  elements: dict
left:
  description: Why this node gets no scratch, V(container) or V(none_blank); null where it gets one.
  returned: success
  type: str
seen:
  description: What was seen on disks that are not used, as records of C(code), C(subject) and C(detail).
  returned: success
  type: list
  elements: dict
sentences:
  description: The same in words.
  returned: success
  type: list
  elements: str
findings:
  description: Why it failed, for programs. Decide by C(code).
  returned: success, and when the node refuses a step
  type: list
  elements: dict
"""

import uuid

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host.ansible_module import PLACE, program_output, replace_file
from ..module_utils.host.kept_files import readable
from ..module_utils.machine.files import FileTree
from ..module_utils.storage.accounts import identify
from ..module_utils.storage.describe import LEFT, describe
from ..module_utils.storage.diffs import diffs
from ..module_utils.storage.scratch import Machine, settle, take_down

SPEC = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "disks": {"type": "list", "elements": "str", "default": []},
    "count": {"type": "int", "default": 0},
    "minimum_gb": {"type": "int", "default": 0},
    "name": {"type": "str", "default": "scratch"},
    "mount_point": {"type": "str", "default": "/scratch"},
    "options": {"type": "list", "elements": "str", "default": ["noatime", "nofail"]},
    "chunk_kib": {"type": "int", "default": 512},
    "owner": {"type": "str", "default": "root"},
    "group": {"type": "str", "default": ""},
    "mode": {"type": "str", "default": "0755"},
    "trim": {"type": "bool", "default": True},
    "destroy_data": {"type": "bool", "default": False},
}


def main():
    """Read, plan and apply; settle and take_down decide what of it is done in check mode."""
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True)

    def run(arguments):
        code, out, err = module.run_command(arguments, cwd=PLACE, environ_update={"LC_ALL": "C", "LANG": "C"}, data="")
        return code, out + err

    machine = Machine(
        FileTree("/"), lambda path, content: replace_file(module, path, content), run, program_output(module, "/"),
        lambda: str(uuid.uuid4()), label=lambda path: module.set_default_selinux_context(path, False),
    )  # fmt: skip
    try:
        if module.params["state"] == "absent":
            answer = take_down(machine, module.params["destroy_data"], module.check_mode)
        else:
            answer = settle(machine, identify(module.params, module.check_mode), module.check_mode)
    except (EnvironmentError, ValueError) as error:
        module.fail_json(msg="The scratch cannot be created: %s." % error)
    answer = readable(answer)
    answer["findings"] = answer.pop("problems")
    answer.update(changed=bool(answer["changes"]), diff=diffs(answer["changes"]))
    answer["sentences"] = [LEFT[one] for one in [answer["left"]] if one] + [describe(one) for one in answer["seen"]]
    if answer["findings"]:
        module.fail_json(msg="; ".join(describe(one) for one in answer["findings"]) + ".", **answer)
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
