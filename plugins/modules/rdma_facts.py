#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: rdma_facts
short_description: Measure RDMA adapters and whether they can reach GPU memory
version_added: 0.1.0
description:
  - Reads host channel adapters, IP over InfiniBand and data centre bridging of a node, and what GPUDirect RDMA depends on.
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
  probe:
    description:
      - Test with libibverbs for each adapter, and with libcuda for each GPU, whether they share memory through DMA buffers.
      - Each library is called in a process of its own with a limit of 20 seconds. A crash or a timeout is returned as a result.
    type: bool
    default: false
  root:
    description:
      - Directory to read in place of the root directory, to examine a recorded machine.
      - With any other value than V(/) no program and no library is used.
    type: path
    default: /
"""

EXAMPLES = r"""
- name: Measure RDMA adapters and GPUDirect RDMA
  allreduce.gpu.rdma_facts:
    probe: true
  become: true
"""

RETURN = r"""
ansible_facts:
  description: The fact.
  returned: success
  type: dict
  contains:
    gpu_rdma:
      description: RDMA on the node.
      returned: success
      type: dict
      sample:
        recorded: false
        adapters:
          - name: mlx5_0
            pci_bus_id: '0000:12:00.0'
            numa_node: 0
            driver: mlx5_core
            firmware: 20.31.1014
            board: MT_0000000223
            guid: b8ce:f603:0077:8ab4
            virtual: false
            node_type: CA
            p2p: null
            ports:
              - port: 1
                link_layer: Ethernet
                state: ACTIVE
                physical_state: LinkUp
                rate_gbps: 200
                netdevs: [ens1f0np0]
                rocev2_gid_index: 3
        ipoib: {}
        dcb:
          ens1f0np0:
            apps: {'26': 3}
            default: 0
            pfc: [3]
            ets:
              tsa: [ets, ets, ets, ets, ets, ets, strict, ets]
              bandwidth: [50, 0, 0, 50, 0, 0, 0, 0]
              classes: [0, 0, 0, 3, 0, 0, 6, 0]
            buffers: {of: [0, 0, 0, 1, 0, 0, 0, 0], sizes: [262016, 131072, 0, 0, 0, 0, 0, 0]}
            dcbx: [host, ieee]
        dcb_program: true
        dcb_agent: false
        traffic_class: {nccl: '106', forced: {}}
        gpudirect:
          verbs: {code: ok, adapters: {mlx5_0: {code: supported, errno: 9}}}
          cuda: {code: ok, status: null, version: 12040, gpus: {'0000:07:00.0': true}}
          peermem: {module: null, clients: {}, registered: false, offered: false}
applied:
  description: Digest of the options of M(allreduce.gpu.rdma) that were last applied since the node booted, if they still hold.
  returned: success
  type: str
  sample: 5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef
"""

import os.path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host.ansible_module import program_output, program_runner
from ..module_utils.host.gpudirect import probes
from ..module_utils.machine.files import FileTree
from ..module_utils.settings import applied
from ..module_utils.settings.rdma import settle
from ..module_utils.settings.rdma_facts import read_rdma
from ..module_utils.settings.tuning import Machine


def main():
    """Read the options, measure, answer."""
    module = AnsibleModule(
        argument_spec={"probe": {"type": "bool", "default": False}, "root": {"type": "path", "default": "/"}},
        supports_check_mode=True,
    )
    root = module.params["root"]
    tree, sys_tree = FileTree(root), FileTree(os.path.join(root, "sys"))
    is_real = root == "/"
    asked = probes() if is_real and module.params["probe"] else None
    fact = read_rdma(tree, sys_tree, program_output(module, root) if is_real else None, asked)
    machine = Machine(tree, None, program_runner(module) if is_real else None)
    holding = applied.holding(tree, "rdma", lambda wanted: settle(machine, wanted, check=True))
    module.exit_json(changed=False, ansible_facts={"gpu_rdma": fact}, applied=holding)


if __name__ == "__main__":
    main()
