#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: qos_facts
short_description: Measure how a node's traffic is shaped
version_added: 0.1.0
description:
  - Returns interfaces with their addresses, speeds, queueing disciplines and HTB classes, and which table of this collection is loaded.
    Never changes the node.
author: "The allreduce.gpu authors (@allreduce)"
attributes:
  check_mode:
    description: Runs in check mode exactly as otherwise.
    support: full
  diff_mode:
    description: Nothing changes.
    support: none
options:
  cgroups:
    description: Control groups to look for, as paths below C(/sys/fs/cgroup).
    type: list
    elements: str
    default: []
  probe:
    description:
      - Test the kernel's features in a temporary network namespace. The kernel loads the modules that this needs.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Measure how the node's traffic is shaped
  allreduce.gpu.qos_facts:
"""

RETURN = r"""
ansible_facts:
  description: The fact C(gpu_qos). What could not be measured is null.
  returned: success
  type: dict
  sample:
    gpu_qos:
      recorded: true
      tc: true
      nft: true
      interfaces:
        eth0:
          addresses: [10.0.0.11]
          speed: 10000
          shaped:
            root: {kind: htb, handle: 'a11e:', options: {default: '0x20'}}
            restorable: false
            ingress: null
            leaf: fq_codel
            redirect: null
            filters: 0
            classes:
              - {handle: 'a11e:1', parent: null, prio: 0, rate: 10000000000, ceil: 10000000000}
              - {handle: 'a11e:10', parent: 'a11e:1', prio: 0, rate: 8000000000, ceil: 10000000000}
              - {handle: 'a11e:20', parent: 'a11e:1', prio: 1, rate: 2000000000, ceil: 10000000000}
      table: 0c2b7bd0a4a2b1f5
      cgroups: []
      kernel: {htb: true, fq_codel: true, ifb: true}
applied:
  description: Digest of the options of M(allreduce.gpu.qos) that were last applied since the node booted, if they still hold.
  returned: success
  type: str
  sample: 5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host.ansible_module import program_output, program_runner
from ..module_utils.machine.files import FileTree
from ..module_utils.settings import applied
from ..module_utils.settings.qos import Machine, settle
from ..module_utils.settings.qos_facts import read_qos


def main():
    """Measure; nothing is ever changed."""
    module = AnsibleModule(
        argument_spec={
            "cgroups": {"type": "list", "elements": "str", "default": []},
            "probe": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    tree = FileTree()
    found = read_qos(tree, program_output(module, "/"), module.params["cgroups"], module.params["probe"])
    machine = Machine(tree, None, program_runner(module))
    holding = applied.holding(tree, "qos", lambda wanted: settle(machine, wanted, check=True))
    module.exit_json(changed=False, ansible_facts={"gpu_qos": found}, applied=holding)


if __name__ == "__main__":
    main()
