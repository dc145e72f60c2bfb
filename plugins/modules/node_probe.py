#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: node_probe
short_description: Smoke-test the driver, the frameworks and SSH to the other nodes
version_added: 0.1.0
description:
  - Runs what only a run can test, C(nvidia-smi), imports of frameworks in their environments, name resolution and SSH
    to the other nodes as the training user, and packets of full size to some of them; reads back who may log in as that user and
    as root.
  - Never changes the node. What could not be tried is null.
author: "The allreduce.gpu authors (@allreduce)"
attributes:
  check_mode:
    description: Runs in check mode exactly as otherwise.
    support: full
options:
  nvidia_smi:
    description: Run C(nvidia-smi).
    type: bool
    default: true
  environments:
    description: Modules to import, by environment below C(/opt/allreduce/envs).
    type: dict
    default: {}
  user:
    description: Unprivileged user who imports the modules and connects to the peers.
    type: str
    default: trainer
  peers:
    description: Cluster addresses of the other nodes, by name. All are tested at the same time.
    type: dict
    default: {}
  mounts:
    description:
      - Paths at which file systems are to be mounted. Each is asked as O(user), for at most five seconds.
    type: list
    elements: str
    default: []
  network:
    description: Parameters of the network tests. By default the network is not tested.
    type: dict
    suboptions:
      name:
        description: Name of this node, which must resolve to its cluster address on the node itself, too.
        type: str
        required: true
      address:
        description: Cluster address of this node.
        type: str
        required: true
      peers:
        description: Nodes of O(peers) that get packets as large as the interface with O(network.address) sends, not to be fragmented.
        type: list
        elements: str
        default: []
"""

EXAMPLES = r"""
- name: Try out the stack
  allreduce.gpu.node_probe:
    environments: {main: [torch]}
    peers: {gpu-2: 10.0.0.12}
    network: {name: gpu-1, address: 10.0.0.11, peers: [gpu-2]}
  become: true
  register: stack_probe
"""

RETURN = r"""
node_probe:
  description: What was seen.
  returned: success
  type: dict
  sample:
    nvidia_smi: {state: listed, count: 1, exit_code: 0, lines: ["GPU 0: NVIDIA A40 (UUID: GPU-f7a8d1c2)"]}
    clock_synchronised: true
    environments: {main: {torch: {version: 2.13.0+cpu, cuda_available: false, device_count: 0, libraries: {cuda: null, cudnn: null, nccl: null}}}}
    peers: {gpu-2: {address: 10.0.0.12, resolved: [10.0.0.12], ssh: null, clock: {least: -0.21, most: 0.02}}}
    selinux_denials: {problem: null, complete: true, denials: []}
    selinux_labels: {/home/trainer/.ssh: ssh_home_t, /home/trainer/.ssh/authorized_keys: ssh_home_t}
    mounts:
      /data: {type: nfs4, source: 'nfs-1:/data', fault: null, free: 5490123456512, size: 9890123456512, writable: true}
    network:
      own_name: [10.0.0.11]
      link: {interface: ens1, mtu: 9000, speed: 25000, lower: {}, shared: {}}
      paths: {gpu-2: {size: 9000, full: true, reached: true, rtt: 0.13, path_mtu: 9000, source: 10.0.0.11}}
    ssh_account:
      nodes: [{name: gpu-1, address: 10.0.0.11, public_key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIN4V4Ca9qCz3zQ}]
      authorized_keys: {state: file, mode: '0600', owner: trainer, sha256: 5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03}
      root_keys: []
      client: {stricthostkeychecking: ask, forwardagent: 'no'}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host import probes
from ..module_utils.host.audit import read_denials
from ..module_utils.host.paths import try_network
from ..module_utils.host.selinux import read_labels
from ..module_utils.host.ssh_account import read_account
from ..module_utils.machine.files import FileTree
from ..module_utils.storage.network_mounts import probe_mounts

NETWORK = {
    "name": {"type": "str", "required": True},
    "address": {"type": "str", "required": True},
    "peers": {"type": "list", "elements": "str", "default": []},
}


def main():
    """Read the options, try, answer."""
    module = AnsibleModule(
        argument_spec={
            "nvidia_smi": {"type": "bool", "default": True},
            "environments": {"type": "dict", "default": {}},
            "user": {"type": "str", "default": "trainer"},
            "peers": {"type": "dict", "default": {}},
            "mounts": {"type": "list", "elements": "str", "default": []},
            "network": {"type": "dict", "options": NETWORK},
        },
        supports_check_mode=True,
    )
    parameters = module.params
    user = probes.known_user(parameters["user"])
    environments = parameters["environments"].items()
    peer = next(iter(sorted(parameters["peers"])), "localhost")
    module.exit_json(
        changed=False,
        node_probe={
            "nvidia_smi": probes.probe_nvidia_smi() if parameters["nvidia_smi"] else None,
            "clock_synchronised": probes.probe_clock(),
            "environments": {name: probes.probe_environment(name, modules, user) for name, modules in environments},
            "peers": probes.probe_peers(parameters["peers"], parameters["user"]),
            "ssh_account": read_account(parameters["user"], peer, probes.run),
            "selinux_denials": read_denials(FileTree(), probes.user_number(user)),
            "selinux_labels": read_labels(FileTree(), probes.home_of(user)),
            "mounts": probe_mounts(FileTree("/proc"), parameters["mounts"], user),
            "network": try_network(parameters["network"], parameters["peers"]),
        },
    )


if __name__ == "__main__":
    main()
