#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: pcie_facts
short_description: Measure PCIe between GPUs and adapters
version_added: 0.1.0
description:
  - Reads the configuration space of the GPUs, of the InfiniBand and RoCE adapters and of the bridges above them, in C(/sys) and
    without C(setpci), the IOMMU's mode for each device, and which devices are held for guests.
  - Only root reads a configuration space in full. Never changes the node.
author: "The allreduce.gpu authors (@allreduce)"
attributes:
  check_mode:
    description: Runs in check mode exactly as otherwise.
    support: full
  facts:
    description: Returns a fact.
    support: full
options:
  root:
    description: Directory to read in place of the root directory, to examine a recorded machine.
    type: path
    default: /
"""

EXAMPLES = r"""
- name: Measure PCIe between GPUs and adapters
  allreduce.gpu.pcie_facts:
  become: true
"""

RETURN = r"""
ansible_facts:
  description: The fact.
  returned: success
  type: dict
  contains:
    gpu_pcie:
      description: >-
        Devices and the bridges above them. C(acs) is the control register of Access Control Services, null where a device does
        not have it; sizes are bytes; C(readable) says whether the configuration space could be read that far.
      returned: success
      type: dict
      sample:
        recorded: false
        devices:
          - {address: '0000:14:00.0', kind: gpu, name: null, path: ['pci0000:10', '0000:10:01.1', '0000:14:00.0'], iommu_group: '12',
             iommu_type: identity, readable: true, port: endpoint, acs: null, read_request: 512, payload: 256,
             relaxed_ordering: true, link: {width: 16, max_width: 16, generation: 1, max_generation: 4}}
        bridges:
          '0000:10:01.1': {readable: true, port: root_port, acs: 29, read_request: 128, payload: 256, relaxed_ordering: false,
                           link: {width: 16, max_width: 16, generation: 4, max_generation: 4}}
        iommu: {units: [dmar0], arguments: [iommu=pt]}
        guests: {devices: [], mediated: []}
        virtual: false
applied:
  description: Digest of the options of M(allreduce.gpu.tuning) that were last applied since the node booted, if they still hold.
  returned: success
  type: str
  sample: 5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.machine.files import FileTree
from ..module_utils.settings.pcie_facts import read_pcie
from ..module_utils.settings.tuning import holding


def main():
    """Read the option, measure, answer."""
    module = AnsibleModule(argument_spec={"root": {"type": "path", "default": "/"}}, supports_check_mode=True)
    tree = FileTree(module.params["root"])
    try:
        fact = read_pcie(tree)
    except ValueError as error:
        module.fail_json(msg="PCIe cannot be measured: %s." % error)
    module.exit_json(changed=False, ansible_facts={"gpu_pcie": fact}, applied=holding(tree, "pcie"))


if __name__ == "__main__":
    main()
