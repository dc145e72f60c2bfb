# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read which processors are online, by their package and NUMA node."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from .hostlist import ranges_of
from .interrupts import members

CPUS = "/sys/devices/system/cpu"
NODES = "/sys/devices/system/node"


def read(tree):
    """Return [{package, node, cores, threads, cpus}] of the places that have processors, in the order in which hwloc numbers them.

    package: number of the kernel; node: of the NUMA node, None where the kernel shows none; cores: how many; threads: of each core,
    None where they differ; cpus: numbers of the processors, as 0-31,64-95. hwloc orders packages, and what is in one, by their first
    processors. One that is offline has no topology.
    """
    nodes = _nodes(tree)
    places = {}
    for name in tree.names(CPUS):
        if not re.match(r"cpu\d+$", name):
            continue
        package = tree.number("%s/%s/topology/physical_package_id" % (CPUS, name))
        siblings = tree.text("%s/%s/topology/thread_siblings_list" % (CPUS, name))
        if package is not None and siblings:
            cpu = int(name[3:])
            cores = places.setdefault((package, nodes.get(cpu)), {})
            cores.setdefault(siblings, []).append(cpu)
    return _ordered(places)


def _nodes(tree):
    """Return {number of a processor: its NUMA node}."""
    found = {}
    for name in tree.names(NODES):
        if re.match(r"node\d+$", name):
            for cpu in members(tree.text("%s/%s/cpulist" % (NODES, name))):
                found[cpu] = int(name[4:])
    return found


def _ordered(places):
    firsts = {}
    for place in places:
        first = _first(places[place])
        firsts[place[0]] = min(first, firsts.get(place[0], first))
    order = sorted(places, key=lambda place: (firsts[place[0]], _first(places[place])))
    return [_place(package, node, places[package, node]) for package, node in order]


def _first(cores):
    return min(min(cpus) for cpus in cores.values())


def _place(package, node, cores):
    threads = {len(cpus) for cpus in cores.values()}
    return {
        "package": package,
        "node": node,
        "cores": len(cores),
        "threads": threads.pop() if len(threads) == 1 else None,
        "cpus": ",".join(ranges_of([str(cpu) for cpus in cores.values() for cpu in cpus])),
    }
