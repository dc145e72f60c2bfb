#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: firewall_facts
short_description: Measure which connections a node's firewall accepts
version_added: 0.1.0
description:
  - Returns the tool that manages the node's rules, which rules of this collection are loaded, other chains that reject by default, interfaces with their
    addresses, and the ports that SSH is served on. Never changes the node.
author: "The allreduce.gpu authors (@allreduce)"
attributes:
  check_mode:
    description: Runs in check mode exactly as otherwise.
    support: full
  diff_mode:
    description: Nothing changes.
    support: none
options: {}
"""

EXAMPLES = r"""
- name: Gather the node's firewall
  allreduce.gpu.firewall_facts:
"""

RETURN = r"""
ansible_facts:
  description: The fact C(gpu_firewall). What could not be measured is null.
  returned: success
  type: dict
  sample:
    gpu_firewall:
      recorded: false
      firewalld: {active: true, version: 1.3.3, unsaved: [], policy: false, peers: null}
      ufw: {active: false, door: false}
      nft: {installed: true, digest: null, peers: null, closed: []}
      kernel: {port_range: 32768 60999, reserved: '', reserved_before: ''}
      interfaces: {eth0: [10.0.0.11]}
      ssh_ports: [22]
      selinux: enforcing
applied:
  description: Digest of the options of M(allreduce.gpu.firewall) that were last applied since the node booted, if they still hold.
  returned: success
  type: str
  sample: 5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host.ansible_module import program_output, program_runner
from ..module_utils.machine.files import FileTree
from ..module_utils.settings import applied
from ..module_utils.settings.firewall import Machine, settle
from ..module_utils.settings.firewall_facts import read_firewall


def main():
    """Measure; nothing is ever changed."""
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    tree = FileTree()
    found = read_firewall(tree, program_output(module, "/"))
    machine = Machine(tree, None, program_runner(module))
    holding = applied.holding(tree, "firewall", lambda wanted: settle(machine, wanted, check=True))
    module.exit_json(changed=False, ansible_facts={"gpu_firewall": found}, applied=holding)


if __name__ == "__main__":
    main()
