# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read where the interrupts of network interfaces are handled, and the processors of their NUMA nodes."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..machine.topology import natural_key


def read(tree, interface):
    """Return {node, cpus, irqs: {number: processors it is handled on}}; cpus is None where the device belongs to no NUMA node."""
    device = tree.resolve("/sys/class/net/%s/device" % interface)
    node = tree.number(device + "/numa_node")
    cpus = tree.text("/sys/devices/system/node/node%d/cpulist" % node) if node is not None and node >= 0 else None
    names = sorted(tree.names(device + "/msi_irqs"), key=natural_key)
    return {"node": node, "cpus": cpus, "irqs": {name: _handled(tree, name) for name in names}}


def _handled(tree, number):
    """Return the processor that the kernel chose of those that it may use."""
    effective = tree.text("/proc/irq/%s/effective_affinity_list" % number)
    return effective or tree.text("/proc/irq/%s/smp_affinity_list" % number)


def affinity_path(number):
    return "/proc/irq/%s/smp_affinity_list" % number


def members(cpulist):
    """Return the numbers in 0-3,8."""
    found = set()
    for part in (cpulist or "").split(","):
        first, dummy, last = part.strip().partition("-")
        if first.isdigit():
            found.update(range(int(first), int(last or first) + 1))
    return found


def strays(reading):
    # type: (dict) -> list
    """Return numbers of the interrupts that are handled outside the NUMA node of their device; none where it has no node."""
    inside = members(reading["cpus"])
    return [
        number
        for number in sorted(reading["irqs"], key=natural_key)
        if inside and reading["irqs"][number] and not members(reading["irqs"][number]) <= inside
    ]
