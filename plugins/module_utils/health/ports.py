# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the ports of the node's adapters: state, rate, and the counters that tell of a link."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

# Below ports/N: counters of IBTA and of mlx5 (Documentation/ABI/stable/sysfs-class-infiniband of the kernel; NVIDIA MLNX_OFED,
# Understanding mlx5 ethtool and RDMA counters). A file that refuses to be read is left out.
COUNTERS = {
    "symbol_error": "counters",
    "link_error_recovery": "counters",
    "link_downed": "counters",
    "local_link_integrity_errors": "counters",
    "excessive_buffer_overrun_errors": "counters",
    "rnr_nak_retry_err": "hw_counters",
    "roce_slow_restart": "hw_counters",
}
INFINIBAND = "/class/infiniband"


def read_ports(tree, nics):
    """Return {"mlx5_0/1": {``adapter``, ``port``, ``up``, ``rate_gbps``, ``link_layer``, ``counters``}}.

    ``nics``: those of gpu_node. ``up`` None: the kernel does not say.
    """
    found = {}
    for nic in nics:
        base = "%s/%s" % (INFINIBAND, nic["name"])
        for port in nic["ports"]:
            found["%s/%d" % (nic["name"], port["port"])] = {
                "adapter": nic["name"],
                "port": port["port"],
                "up": is_up(tree, base, port),
                "rate_gbps": port["rate_gbps"],
                "link_layer": port["link_layer"],
                "counters": read_counters(tree, "%s/ports/%d" % (base, port["port"])),
            }
    return found


def is_up(tree, base, port):
    """Return True if a port carries traffic; some adapters are always ACTIVE, and their interface knows better."""
    if port["state"] is None:
        return None
    states = [tree.text("%s/device/net/%s/operstate" % (base, name)) for name in port["netdevs"]]
    return port["state"] == "ACTIVE" and not (states and all(state == "down" for state in states))


def read_counters(tree, place):
    numbers = {name: tree.number("%s/%s/%s" % (place, folder, name)) for name, folder in COUNTERS.items()}
    return {name: number for name, number in numbers.items() if number is not None}
