#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: tuning
short_description: Tune a node's kernel, and restore the previous state
version_added: 0.1.0
description:
  - Brings files, values below C(/proc) and C(/sys), the kernel's arguments and tuned's profile to what is declared, in one step.
  - >-
      The state before the first change is recorded in C(/var/lib/allreduce). What is no longer declared, or everything with O(state=absent), is
      restored, every byte and every value.
  - What belongs on which node is decided by role P(allreduce.gpu.tuning#role); this module carries it out.
author: "The allreduce.gpu authors (@allreduce)"
extends_documentation_fragment: [allreduce.gpu.applied, allreduce.gpu.files]
attributes:
  check_mode:
    description: Predicts changes without making them.
    support: full
  diff_mode:
    description: Shows what changes in each file, and each value.
    support: full
options:
  state:
    description: V(absent) restores everything that was recorded, whatever the other options are.
    type: str
    choices: [present, absent]
    default: present
  values:
    description: Values of files below C(/proc) and C(/sys), and of registers. Those that the node does not have are ignored.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description:
          - Absolute path; V(*) stands for any name of one directory.
          - With V(#CAP_EXP+08.w:7000) or the like behind the path of a PCI device's file C(config), those bits of that register,
            as C(setpci) writes them; V(#ECAP_ACS+06.w:002c) is the other one.
        type: str
        required: true
      value:
        description: What is written; of a register, four hexadecimal digits.
        type: str
        required: true
  interfaces:
    description: Network interfaces whose interrupts are bound to the NUMA node of their device.
    type: list
    elements: str
    default: []
  arguments:
    description: Kernel arguments, which the distribution's own tool sets for the next boot.
    type: list
    elements: str
    default: []
  profile:
    description: Profile of tuned.
    type: str
    default: ''
  record:
    description:
      - Name of the record of this change, a word of small letters. Each name has a record of its own, so that one is restored without the
        others.
    type: str
    default: tuning
  root:
    description:
      - Directory to change in place of the root directory, to try a change on a recorded machine.
      - With any other value than V(/) no program is run.
    type: path
    default: /
"""

EXAMPLES = r"""
- name: Tune the memory of this node
  allreduce.gpu.tuning:
    files:
      - path: /etc/sysctl.d/90-allreduce.conf
        content: |
          vm.swappiness = 10
    values:
      - path: /proc/sys/vm/swappiness
        value: "10"

- name: Restore the previous state
  allreduce.gpu.tuning:
    state: absent
"""

RETURN = r"""
changes:
  description: The steps, each with C(kind) (C(file), C(value), C(argument) or C(profile)), C(subject), C(before) and C(after).
  returned: success, and when the node refuses a step
  type: list
  elements: dict
  sample:
    - {kind: value, subject: /proc/sys/vm/swappiness, before: '60', after: '10'}
reboot:
  description: Whether a step takes effect only after a reboot.
  returned: success, and when the node refuses a step
  type: bool
findings:
  description: Why it failed, for programs. Decide by C(code).
  returned: success, and when the node refuses a step
  type: list
  elements: dict
  sample:
    - {code: not_set, subject: /proc/sys/vm/swappiness, detail: {value: '10', reason: Read-only file system}}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host.ansible_module import PLACE, replace_file
from ..module_utils.host.kept_files import readable
from ..module_utils.machine.files import FileTree
from ..module_utils.settings import applied
from ..module_utils.settings.tuning import Machine, settle
from ..module_utils.settings.tuning_describe import describe
from ..module_utils.settings.tuning_plan import NOTHING
from ..module_utils.settings.tuning_record import path_of

FILE = {
    "path": {"type": "path", "required": True}, "content": {"type": "str"}, "mode": {"type": "str", "default": "0644"},
    "link": {"type": "str"},
}  # fmt: skip
VALUE = {"path": {"type": "str", "required": True}, "value": {"type": "str", "required": True}}


ONE_OF = {"required_one_of": [["content", "link"]], "mutually_exclusive": [["content", "link"]]}
STRINGS = {"type": "list", "elements": "str", "default": []}
SPEC = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "files": dict({"type": "list", "elements": "dict", "default": [], "options": FILE}, **ONE_OF),
    "values": {"type": "list", "elements": "dict", "default": [], "options": VALUE},
    "interfaces": STRINGS,
    "arguments": STRINGS,
    "profile": {"type": "str", "default": ""},
    "record": {"type": "str", "default": "tuning"},
    "applied": {"type": "str"},
    "root": {"type": "path", "default": "/"},
}


def main():
    """Read, plan and apply; settle decides what of it is done in check mode."""
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True)
    given = module.params

    def run(arguments):
        code, out, err = module.run_command(arguments, cwd=PLACE, environ_update={"LC_ALL": "C", "LANG": "C"})
        return code, out + err

    wanted = NOTHING if given["state"] == "absent" else {key: given[key] for key in NOTHING}
    for one in wanted["files"]:
        one.pop("mode" if one["link"] is not None else "link")
    try:
        machine = Machine(
            FileTree(given["root"]),
            lambda path, content: replace_file(module, path, content),
            run if given["root"] == "/" else None,
            path_of(given["record"]),
        )
        answer = readable(settle(machine, wanted, module.check_mode))
    except (EnvironmentError, ValueError) as error:
        module.fail_json(msg="The node cannot be tuned: %s." % error)
    answer["findings"] = answer.pop("problems")
    if answer["findings"]:
        module.fail_json(msg=" ".join(describe(one) for one in answer["findings"]), **answer)
    if not module.check_mode:
        applied.note(machine.tree, given["record"], given, wanted)
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
