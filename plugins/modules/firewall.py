#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: firewall
short_description: Reconcile a node's firewall with its rules, and restore the previous state
version_added: 0.1.0
description:
  - >-
      Writes the files of the rules, loads them, and records in C(/var/lib/allreduce/firewall.json) the state before the first change. What is no
      longer declared, or everything with O(state=absent), is restored byte for byte.
  - >-
      With O(rollback_seconds), a timer on the node rolls this run back unless O(state=confirmed) comes in time, so that a node whose
      connection was lost can be reached again.
  - What belongs on which node is decided by role P(allreduce.gpu.firewall#role); this module carries it out.
author: "The allreduce.gpu authors (@allreduce)"
extends_documentation_fragment: [allreduce.gpu.applied, allreduce.gpu.files]
attributes:
  check_mode:
    description: Predicts changes without making them.
    support: full
  diff_mode:
    description: Shows what changes in each file, and what runs.
    support: full
options:
  state:
    description:
      - >-
          V(absent) restores everything that was recorded. V(confirmed) keeps what the previous run changed, and does nothing else. V(disabled)
          removes the rules of this module, and stops the firewall's service and SELinux's enforcement.
    type: str
    choices: [present, absent, confirmed, disabled]
    default: present
  owner:
    description: Tool that manages the node's rules, with O(state=present).
    type: str
    choices: [nftables, firewalld, ufw]
  values:
    description: Values of files below C(/proc/sys).
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Absolute path.
        type: path
        required: true
      value:
        description: What is written.
        type: str
        required: true
  rollback_seconds:
    description: Seconds within which a change has to be confirmed. V(0) needs no confirmation.
    type: int
    default: 0
  rollback_program:
    description: Files of the program that rolls back, with C(path) and C(content).
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Absolute path.
        type: path
        required: true
      content:
        description: The whole text.
        type: str
        required: true
  rollback_python:
    description: Interpreter of that program.
    type: path
    default: /usr/bin/python3
  root:
    description:
      - Directory to change in place of the root directory, to try a change on a recorded machine.
      - With any other value than V(/) no program is run.
    type: path
    default: /
"""

EXAMPLES = r"""
- name: Restore the previous state
  allreduce.gpu.firewall:
    state: absent
"""

RETURN = r"""
changes:
  description: The steps, each with C(kind) (C(file), C(value), C(rules), C(service) or C(confirmation)), and C(subject).
  returned: success, and when the node refuses a step
  type: list
  elements: dict
  sample:
    - {kind: file, subject: /etc/allreduce/firewall.nft}
findings:
  description: Why it failed, for programs. Decide by C(code).
  returned: success, and when the node refuses a step
  type: list
  elements: dict
  sample:
    - {code: command_failed, subject: ufw reload, detail: {status: 1, reason: "ERROR: problem running"}}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host.ansible_module import program_runner, replace_file
from ..module_utils.machine.files import FileTree
from ..module_utils.settings import applied
from ..module_utils.settings.firewall import Machine, confirm, settle
from ..module_utils.settings.firewall_describe import describe
from ..module_utils.settings.firewall_plan import NOTHING

TEXT = {"path": {"type": "path", "required": True}, "content": {"type": "str", "required": True}}
FILE = dict(TEXT, content={"type": "str"}, link={"type": "str"}, mode={"type": "str", "default": "0644"})
VALUE = {"path": {"type": "path", "required": True}, "value": {"type": "str", "required": True}}
ONE_OF = {"required_one_of": [["content", "link"]], "mutually_exclusive": [["content", "link"]]}
SPEC = {
    "state": {"type": "str", "choices": ["present", "absent", "confirmed", "disabled"], "default": "present"},
    "owner": {"type": "str", "choices": ["nftables", "firewalld", "ufw"]},
    "files": dict({"type": "list", "elements": "dict", "default": [], "options": FILE}, **ONE_OF),
    "values": {"type": "list", "elements": "dict", "default": [], "options": VALUE},
    "rollback_seconds": {"type": "int", "default": 0},
    "rollback_program": {"type": "list", "elements": "dict", "default": [], "options": TEXT},
    "rollback_python": {"type": "path", "default": "/usr/bin/python3"},
    "applied": {"type": "str"},
    "root": {"type": "path", "default": "/"},
}


def main():
    """Read, plan, apply; what of it is done in check mode is settle's business."""
    module = AnsibleModule(argument_spec=SPEC, required_if=[("state", "present", ("owner",))], supports_check_mode=True)
    given = module.params
    run = program_runner(module) if given["root"] == "/" else None
    machine = Machine(FileTree(given["root"]), lambda path, content: replace_file(module, path, content), run)
    wanted = dict(NOTHING, disabled=given["state"] == "disabled")
    if given["state"] == "present":
        wanted.update((key, given[key]) for key in ("owner", "files", "values"))
    for one in wanted["files"]:
        one.pop("mode" if one["link"] is not None else "link")
    rollback = {key: given["rollback_" + key] for key in ("seconds", "python")}
    rollback["files"] = given["rollback_program"]
    try:
        if given["state"] == "confirmed":
            problems = confirm(machine, module.check_mode)
            answer = {"changed": not problems, "changes": [], "problems": problems}
        else:
            answer = settle(machine, wanted, rollback if rollback["seconds"] else None, module.check_mode)
    except (EnvironmentError, ValueError) as error:
        module.fail_json(msg="The node's firewall cannot be changed: %s." % error)
    answer["changes"] = [{key: one[key] for key in ("kind", "subject")} for one in answer["changes"]]
    answer["findings"] = answer.pop("problems")
    if answer["findings"]:
        module.fail_json(msg=" ".join(describe(one) for one in answer["findings"]), **answer)
    if not module.check_mode and given["state"] != "confirmed":
        applied.note(machine.tree, "firewall", given, wanted)
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
