#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: tuning_facts
short_description: Measure kernel parameters, processors, interrupts and limits of a node
version_added: 0.1.0
description:
  - Reads running and boot-time values, and those before M(allreduce.gpu.tuning) changed anything.
  - Never changes the node. Unknown values are null or omitted, never a guess.
author: "The allreduce.gpu authors (@allreduce)"
attributes:
  check_mode:
    description: Runs in check mode exactly as otherwise.
    support: full
  facts:
    description: Returns a fact.
    support: full
options:
  sysctl:
    description: Keys to read, with dots.
    type: list
    elements: str
    default: []
  services:
    description: Names of systemd services whose processes are examined, without C(.service).
    type: list
    elements: str
    default: []
  interfaces:
    description: Network interfaces whose interrupts are examined.
    type: list
    elements: str
    default: []
  probe:
    description:
      - Start a login and a service to measure the limits that they get, and let tuned verify its profile.
    type: bool
    default: false
  user:
    description: User whose login is tested; V(root) where the node does not have the user.
    type: str
    default: root
  root:
    description:
      - Directory to read in place of the root directory, to examine a recorded machine.
      - With any other value than V(/) no program is run.
    type: path
    default: /
"""

EXAMPLES = r"""
- name: Measure what the node is tuned to
  allreduce.gpu.tuning_facts:
    sysctl: [vm.swappiness, net.core.rmem_max]
    services: [slurmd]
  become: true
"""

RETURN = r"""
ansible_facts:
  description: The fact.
  returned: success
  type: dict
  contains:
    gpu_tuning:
      description: Tuning of the node.
      returned: success
      type: dict
      sample:
        container: false
        recorded: true
        sysctl: {vm.swappiness: {running: '10', original: '60'}}
        sysctl_lines: [{file: /etc/sysctl.d/99-site.conf, line: 3, key: vm.swappiness, value: '60'}]
        switches: {governor: {running: performance, original: schedutil}}
        tuned: {in_charge: false, profile: '', mode: '', directory: /etc/tuned/allreduce, bases: [], verified: null}
        logind: {running: 'yes', ours: false, overriding: null}
        arguments: {tool: update-grub, running: [ro, quiet], configured: [ro, quiet], overriding: null}
        interfaces: {ens1: {node: 0, cpus: 0-31, irqs: {'120': '4'}}}
        limits:
          ceiling: {memlock: unlimited, nproc: unlimited, nofile: 1048576}
          services: {slurmd: {memlock: {soft: 8388608, hard: 8388608, pid: 812}}}
          fresh: null
        numa_nodes: 2
        shared_subnets: [{subnet: 0000000A/00FFFFFF, interfaces: [ens1, ens2]}]
        neighbours: 12
        memory_kib: 1056000000
        huge_page_kib: 2048
applied:
  description: Digest of the options of M(allreduce.gpu.tuning) that were last applied since the node booted, if they still hold.
  returned: success
  type: str
  sample: 5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host.ansible_module import program_output
from ..module_utils.host.probes import known_user
from ..module_utils.machine.files import FileTree
from ..module_utils.settings.tuning import holding
from ..module_utils.settings.tuning_facts import read_tuning


def main():
    """Read the options, measure, answer."""
    strings = {"type": "list", "elements": "str", "default": []}
    module = AnsibleModule(
        argument_spec={
            "sysctl": strings,
            "services": strings,
            "interfaces": strings,
            "probe": {"type": "bool", "default": False},
            "user": {"type": "str", "default": "root"},
            "root": {"type": "path", "default": "/"},
        },
        supports_check_mode=True,
    )
    given = module.params
    ask = program_output(module, "/") if given["root"] == "/" else None
    run = ask if given["probe"] else None
    user = known_user(given["user"]) or "root"
    tree = FileTree(given["root"])
    try:
        fact = read_tuning(tree, given["sysctl"], given["services"], given["interfaces"], run, user, ask)
    except ValueError as error:
        module.fail_json(msg="The node's settings cannot be read: %s." % error)
    module.exit_json(changed=False, ansible_facts={"gpu_tuning": fact}, applied=holding(tree, "tuning"))


if __name__ == "__main__":
    main()
