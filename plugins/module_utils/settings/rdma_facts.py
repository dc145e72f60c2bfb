# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gather the RDMA state of a node, as ``ansible_facts.gpu_rdma``."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..host import dcb, gpudirect, rdma
from . import nccl

RECORD = "/var/lib/allreduce/rdma.json"


def read_rdma(tree, sys_tree, run=None, probes=None):
    """Return the whole fact; a node without adapters has little more than the empty list of them.

    run: see ansible_module.program_output; probes: see gpudirect.read_gpudirect; None to start nothing.
    """
    adapters = rdma.read_adapters(sys_tree)
    names = [one["name"] for one in adapters]
    ports = rdma.interfaces(adapters, "Ethernet")
    return {
        "adapters": adapters,
        "recorded": tree.exists(RECORD),
        "ipoib": rdma.read_ipoib(sys_tree),
        "dcb": {name: dcb.read_port(run, name) for name in ports} if run else {},
        "dcb_program": dcb.has_program(tree),
        "dcb_agent": bool(ports) and dcb.has_agent(tree),
        "traffic_class": {
            "nccl": nccl.variables_of(nccl.short_text(tree, nccl.CONF)).get("NCCL_IB_TC"),
            "forced": forced_traffic_classes(sys_tree, names),
        },
        "gpudirect": gpudirect.read_gpudirect(tree, names, probes) if adapters else None,
    }


def forced_traffic_classes(sys_tree, names):
    """Return {adapter: traffic class} where NVIDIA's drivers give one to every connection, whatever it asks for."""
    found = {}
    for name in names:
        lines = (sys_tree.text("/class/infiniband/%s/tc/1/traffic_class" % name) or "").split("\n")
        # "Global tclass=106" comes before the lines of single addresses.
        number = lines[0].partition("=")[2].strip()
        if number.isdigit():
            found[name] = int(number)
    return found
