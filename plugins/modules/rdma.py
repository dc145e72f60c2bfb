#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: rdma
short_description: Configure the ports of RDMA adapters, and restore the previous state
version_added: 0.1.0
description:
  - Brings files, kernel modules, values below C(/sys) and data centre bridging of ports to what is declared, in one step.
  - >-
      The state before the first change is recorded in C(/var/lib/allreduce/rdma.json). What is no longer declared, or everything with
      O(state=absent), is restored.
  - What belongs on which node is decided by role P(allreduce.gpu.rdma#role); this module carries it out.
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
    description: Values of files below C(/sys). Those that the node does not have are ignored.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Absolute path; V(*) stands for any name of one directory.
        type: str
        required: true
      value:
        description: What is written.
        type: str
        required: true
  modules:
    description: Kernel modules to load.
    type: list
    elements: str
    default: []
  ports:
    description:
      - Data centre bridging of ports. A change of O(ports[].pfc) may take the link of the port down for a moment.
    type: list
    elements: dict
    default: []
    suboptions:
      interface:
        description: Name of the network interface.
        type: str
        required: true
      apps:
        description: Priorities by DSCP. Entries for other DSCP stay.
        type: dict
        default: {}
      pfc:
        description: Priorities with flow control, all of them.
        type: list
        elements: int
        default: []
      ets:
        description: How traffic classes are served. Without it, this stays as it is.
        type: dict
        suboptions:
          tsa:
            description: Of each of the eight classes, V(ets) or V(strict).
            type: list
            elements: str
            required: true
          bandwidth:
            description: Percentage of each class.
            type: list
            elements: int
            required: true
          classes:
            description: Class of each of the eight priorities.
            type: list
            elements: int
            required: true
  root:
    description:
      - Directory to change in place of the root directory, to try a change on a recorded machine.
      - With any other value than V(/) no program is run, and O(ports) are left alone.
    type: path
    default: /
"""

EXAMPLES = r"""
- name: Give RoCE with DSCP 26 a priority without losses
  allreduce.gpu.rdma:
    ports:
      - interface: ens1f0np0
        apps: {26: 3}
        pfc: [3]

- name: Restore the previous state
  allreduce.gpu.rdma:
    state: absent
"""

RETURN = r"""
changes:
  description: The steps, each with C(kind) (C(file), C(command), C(module), C(port) or C(value)), C(subject), C(before) and C(after).
  returned: success, and when the node refuses a step
  type: list
  elements: dict
  sample:
    - {kind: port, subject: ens1f0np0/pfc, before: [], after: [3]}
findings:
  description: Why it failed, for programs. Decide by C(code).
  returned: success, and when the node refuses a step
  type: list
  elements: dict
  sample:
    - {code: no_bridging, subject: ens1f0np0, detail: {}}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host.ansible_module import PLACE, replace_file
from ..module_utils.host.kept_files import readable
from ..module_utils.machine.files import FileTree
from ..module_utils.settings import applied
from ..module_utils.settings.rdma import settle
from ..module_utils.settings.rdma_describe import describe
from ..module_utils.settings.rdma_plan import NOTHING
from ..module_utils.settings.tuning import Machine

FILE = {
    "path": {"type": "path", "required": True}, "content": {"type": "str"}, "mode": {"type": "str", "default": "0644"},
    "link": {"type": "str"},
}  # fmt: skip
VALUE = {"path": {"type": "str", "required": True}, "value": {"type": "str", "required": True}}
ETS = {
    key: {"type": "list", "elements": kind, "required": True}
    for key, kind in (("tsa", "str"), ("bandwidth", "int"), ("classes", "int"))
}
PORT = {
    "interface": {"type": "str", "required": True},
    "apps": {"type": "dict", "default": {}},
    "pfc": {"type": "list", "elements": "int", "default": []},
    "ets": {"type": "dict", "options": ETS},
}


def main():
    """Read, plan and apply; settle decides what of it is done in check mode."""
    one_of = {"required_one_of": [["content", "link"]], "mutually_exclusive": [["content", "link"]]}
    many = {"type": "list", "elements": "dict", "default": []}
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "files": dict(many, options=FILE, **one_of),
            "values": dict(many, options=VALUE),
            "modules": {"type": "list", "elements": "str", "default": []},
            "ports": dict(many, options=PORT),
            "applied": {"type": "str"},
            "root": {"type": "path", "default": "/"},
        },
        supports_check_mode=True,
    )
    given = module.params

    def run(arguments):
        code, out, err = module.run_command(arguments, cwd=PLACE, environ_update={"LC_ALL": "C", "LANG": "C"})
        return code, out + err

    wanted = NOTHING if given["state"] == "absent" else {key: given[key] for key in NOTHING}
    for one in wanted["files"]:
        one.pop("mode" if one["link"] is not None else "link")
    machine = Machine(
        FileTree(given["root"]),
        lambda path, content: replace_file(module, path, content),
        run if given["root"] == "/" else None,
    )
    try:
        answer = readable(settle(machine, wanted, module.check_mode))
    except (EnvironmentError, ValueError) as error:
        module.fail_json(msg="The ports cannot be set up: %s." % error)
    answer["findings"] = answer.pop("problems")
    if answer["findings"]:
        module.fail_json(msg=" ".join(describe(one) for one in answer["findings"]), **answer)
    if not module.check_mode:
        applied.note(machine.tree, "rdma", given, wanted)
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
