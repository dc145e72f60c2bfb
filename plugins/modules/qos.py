#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: qos
short_description: Shape the traffic of a node's interfaces, and restore the previous state
version_added: 0.1.0
description:
  - Loads a table of nftables that chooses the class of a packet, gives interfaces their HTB classes, and writes files that do so again at
    boot. The queueing discipline before the first change is recorded in C(/var/lib/allreduce/qos.json). What is no longer declared, or
    everything with O(state=absent), is restored.
  - If a program fails, the node is restored to its previous state.
  - Which classes a node gets is decided by role P(allreduce.gpu.qos#role); this module carries it out.
author: "The allreduce.gpu authors (@allreduce)"
extends_documentation_fragment: [allreduce.gpu.applied, allreduce.gpu.files]
attributes:
  check_mode:
    description: Predicts changes without making them.
    support: full
  diff_mode:
    description: Shows what changes in each file, and the class table of each interface.
    support: full
options:
  state:
    description: V(absent) restores everything that was recorded.
    type: str
    choices: [present, absent]
    default: present
  interfaces:
    description: Interfaces and their classes.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the interface.
        type: str
        required: true
      ifb:
        description: Name of the ifb device that its incoming packets go through; empty for none.
        type: str
        default: ''
      rate:
        description: Rate of all classes together, in bit/s.
        type: int
        required: true
      leaf:
        description: Queueing discipline below each class; empty for HTB's own.
        type: str
        default: ''
      classes:
        description: Classes below the one of the whole rate. The last is that of all packets for which no class was chosen.
        type: list
        elements: dict
        required: true
        suboptions:
          minor:
            description: Minor number of the class, as hexadecimal digits.
            type: str
            required: true
          rate:
            description: Guaranteed rate in bit/s.
            type: int
            required: true
          ceil:
            description: Rate in bit/s that it may borrow up to.
            type: int
            required: true
          prio:
            description: Order in which classes borrow, the lowest number first.
            type: int
            required: true
      filters:
        description: Words of tc after C(filter add dev X parent Y) that choose the class of incoming packets.
        type: list
        elements: str
        default: []
  table:
    description: Text for C(nft -f) that chooses the class of packets.
    type: str
    default: ''
  digest:
    description: Digest of O(table), which has it as a comment.
    type: str
    default: ''
  root:
    description:
      - Directory to change in place of the root directory, to try a change on a recorded machine.
      - With any other value than V(/) no program is run.
    type: path
    default: /
"""

EXAMPLES = r"""
- name: Put back the queueing disciplines that were there before
  allreduce.gpu.qos:
    state: absent
"""

RETURN = r"""
changes:
  description: The steps, each with C(kind) (C(file), C(unit), C(table) or C(interface)), and C(subject).
  returned: success, and when the node refuses a step
  type: list
  elements: dict
  sample:
    - {kind: interface, subject: eth0}
findings:
  description: Why it failed, for programs. Decide by C(code).
  returned: success, and when the node refuses a step
  type: list
  elements: dict
  sample:
    - {code: command_failed, subject: tc -batch -, detail: {status: 1, reason: "Error: Specified qdisc kind is unknown."}}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host.ansible_module import program_runner, replace_file
from ..module_utils.machine.files import FileTree
from ..module_utils.settings import applied
from ..module_utils.settings.qos import NOTHING, Machine, settle
from ..module_utils.settings.qos_describe import describe

NAME = {"type": "str", "required": True}
NUMBER = {"type": "int", "required": True}
TEXT = {"type": "str", "default": ""}
CLASS = {"minor": NAME, "rate": NUMBER, "ceil": NUMBER, "prio": NUMBER}
INTERFACE = {
    "name": NAME, "ifb": TEXT, "rate": NUMBER, "leaf": TEXT, "filters": {"type": "list", "elements": "str", "default": []},
    "classes": {"type": "list", "elements": "dict", "required": True, "options": CLASS},
}  # fmt: skip
FILE = {
    "path": {"type": "path", "required": True}, "content": {"type": "str"}, "mode": {"type": "str", "default": "0644"},
    "link": {"type": "str"},
}  # fmt: skip
ONE_OF = {"required_one_of": [["content", "link"]], "mutually_exclusive": [["content", "link"]]}
SPEC = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "interfaces": {"type": "list", "elements": "dict", "default": [], "options": INTERFACE},
    "table": TEXT,
    "digest": TEXT,
    "files": dict({"type": "list", "elements": "dict", "default": [], "options": FILE}, **ONE_OF),
    "applied": {"type": "str"},
    "root": {"type": "path", "default": "/"},
}


def main():
    """Read, plan, apply; what of it is done in check mode is settle's business."""
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True)
    given = module.params
    run = program_runner(module) if given["root"] == "/" else None
    machine = Machine(FileTree(given["root"]), lambda path, content: replace_file(module, path, content), run)
    wanted = NOTHING if given["state"] == "absent" else {key: given[key] for key in NOTHING}
    wanted = dict(wanted, digest=wanted["digest"] or None)
    for one in wanted["files"]:
        one.pop("mode" if one["link"] is not None else "link")
    try:
        answer = settle(machine, wanted, module.check_mode)
    except (EnvironmentError, ValueError) as error:
        module.fail_json(msg="The node's interfaces cannot be shaped: %s." % error)
    answer["changes"] = [{key: one[key] for key in ("kind", "subject")} for one in answer["changes"]]
    answer["findings"] = answer.pop("problems")
    if answer["findings"]:
        sentences = [describe(one) for one in answer["findings"]]
        module.fail_json(msg=" ".join(sentences + ["The previous state was restored."]), **answer)
    if not module.check_mode:
        applied.note(machine.tree, "qos", given, wanted)
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
