#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: network_bandwidth
short_description: Measure bandwidth and latency between this node and another one
version_added: 0.1.0
description:
  - Runs C(iperf3), which must be installed, once in each direction, and C(ping) before, when there is no load.
  - Then measures each rail, that is, each active port of an RDMA adapter, with C(ib_write_bw) in both directions and with C(ib_write_lat),
    one rail after the other. A rail joins adapters of the same name. EFA and iWARP are left out, as these programs connect them otherwise.
  - Each server answers one measurement and then exits, or exits after O(linger) seconds without one.
  - Never changes the node. Starts nothing in check mode.
author: "The allreduce.gpu authors (@allreduce)"
attributes:
  check_mode:
    description: Nothing is started and nothing is returned.
    support: full
options:
  role:
    description: V(server) starts two servers and returns at once; V(client) measures, with those of O(peer).
    type: str
    choices: [server, client]
    required: true
  address:
    description: Cluster address of this node, which servers listen on and clients send from.
    type: str
    required: true
  peer:
    description: Cluster address of the server, for O(role=client).
    type: str
  port:
    description:
      - Port of the direction from client to server; the other direction takes the next one, and each rail the three ports after
        those before it.
    type: int
    default: 5201
  seconds:
    description: Seconds for which each direction is measured.
    type: int
    default: 3
  linger:
    description: Seconds after which an unused server ends.
    type: int
    default: 60
  rails:
    description: What the server returned as RV(rails), for O(role=client). Other rails are not measured.
    type: dict
    default: {}
  sysfs_root:
    description: Directory that stands for C(/sys), such as a recorded machine.
    type: path
    default: /sys
  user:
    description: Unprivileged user who runs the programs, where the node has the user.
    type: str
    default: nobody
"""

EXAMPLES = r"""
- name: Wait for one measurement
  allreduce.gpu.network_bandwidth:
    role: server
    address: 10.0.0.12
  when: inventory_hostname == 'gpu-2'

- name: Measure
  allreduce.gpu.network_bandwidth:
    role: client
    address: 10.0.0.11
    peer: 10.0.0.12
  when: inventory_hostname == 'gpu-1'
  register: pair
"""

RETURN = r"""
bandwidth:
  description:
    - Both directions. Where one has no figure, C(code) says why, V(no_connection), V(interrupted), V(no_report), and for a server
      that does not listen V(port_in_use) or V(no_server); C(output) has the message of C(iperf3).
  returned: success, without check mode; for a server only what does not work
  type: dict
  sample:
    forward: {port: 5201, latency: 0.041, bits_per_second: 23500000000.0}
    reverse: {port: 5202, latency: 0.041, code: no_connection, output: 'unable to connect to server: Connection timed out'}
rails:
  description:
    - The rails by their names, adapter or adapter:port. Of a server C(port), with C(code) where it does not listen, V(port_in_use),
      V(no_server), V(no_program). Of a client both directions as in RV(bandwidth); C(code) is one of the server's, V(no_rail) where
      one of the nodes has no such active port, or V(no_report).
  returned: success, without check mode
  type: dict
  sample:
    mlx5_0:
      forward: {port: 5203, latency: 0.00152, bits_per_second: 197000000000.0}
      reverse: {port: 5204, latency: 0.00152, bits_per_second: 196800000000.0}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host import iperf, perftest
from ..module_utils.host.probes import known_user
from ..module_utils.machine.files import FileTree


def main():
    """Read the options, serve or measure, answer."""
    module = AnsibleModule(
        argument_spec={
            "role": {"type": "str", "choices": ["server", "client"], "required": True},
            "address": {"type": "str", "required": True},
            "peer": {"type": "str"},
            "port": {"type": "int", "default": 5201},
            "seconds": {"type": "int", "default": 3},
            "linger": {"type": "int", "default": 60},
            "rails": {"type": "dict", "default": {}},
            "sysfs_root": {"type": "path", "default": "/sys"},
            "user": {"type": "str", "default": "nobody"},
        },
        required_if=[("role", "client", ["peer"])],
        supports_check_mode=True,
    )
    given, user = module.params, known_user(module.params["user"])
    ports, seconds, sys_tree = (given["port"], given["port"] + 1), given["seconds"], FileTree(given["sysfs_root"])
    if module.check_mode:
        module.exit_json(changed=False)
    if given["role"] == "client":
        found = iperf.measure(given["address"], given["peer"], ports, seconds, user)
        rails = perftest.measure(sys_tree, given["peer"], given["rails"], seconds, user)
    else:
        problems = iperf.serve(FileTree(), given["address"], ports, given["linger"], user)
        ways = zip(("forward", "reverse"), ports)
        found = {way: dict(problems[port], port=port) for way, port in ways if port in problems}
        rails = perftest.serve(FileTree(), sys_tree, ports[1] + 1, seconds, given["linger"], user)
    module.exit_json(changed=False, bandwidth=found, rails=rails)


if __name__ == "__main__":
    main()
