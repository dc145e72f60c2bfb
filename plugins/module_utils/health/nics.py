# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge the node's adapters: their ports against what is declared, and what the kernel's log says of them."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from ..machine.rails import rail_ports
from .findings import fault, judged

PORTS, ERRORS = "nic_ports", "nic_errors"
# drivers/net/ethernet/mellanox/mlx5/core: cmd.c, health.c. After these the firmware, or the driver's use of it, is not to be trusted.
EVENT = re.compile(
    r"mlx5_core (?P<address>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])[^\n]*?"
    r"(?P<what>[Ww]ill cause a leak of a command resource|health compromised|unrecoverable hardware error)"
)


def steps(node, log, limits):
    """Return [(checks, function, its arguments)]."""
    return [((PORTS,), ports, (node, limits)), ((ERRORS,), errors, (node, log))]


def ports(node, limits):
    """Judge how many ports are up, and how fast they are, where that is declared; equals are compared by gpu_node itself."""
    wanted, rate = limits["nic_ports"], limits["nic_rate_gbps"]
    if wanted is None and rate is None:
        return []
    up = [(nic, port) for nic in node["nics"] for port in nic["ports"] if port["state"] == "ACTIVE"]
    found, slow = [], []
    if rate is not None:
        slow = [pair for pair in up if (pair[1]["rate_gbps"] or 0) < rate]
        slow = [pair for pair in slow if wanted is not None or pair in rails(node)]
    if wanted is None:
        found = [too_slow(nic, port, rate) for nic, port in slow]
    elif len(up) - len(slow) < wanted:
        fast = " of at least %d Gbit/s" % rate if rate else ""
        names = ", ".join(name_of(*pair) for pair in up if pair not in slow) or "none"
        found = [fault(PORTS, "fewer", "%d ports%s" % (wanted, fast), "%d: %s" % (len(up) - len(slow), names))]
    return [judged(PORTS, "as declared", "%d ports up" % len(up), found)]


def rails(node):
    return rail_ports(node["gpus"], node["nics"], node["topology"])


def too_slow(nic, port, rate):
    return dict(
        fault(PORTS, "slow", "%d Gbit/s" % rate, "%s Gbit/s on %s" % (port["rate_gbps"], name_of(nic, port))),
        subject=name_of(nic, port),
    )


def name_of(nic, port):
    return "%s/%d" % (nic["name"], port["port"])


def errors(node, log):
    """Judge what the log says of this node's adapters; check xid says where it cannot be read."""
    adapters = {nic["pci_bus_id"]: nic["name"] for nic in node["nics"] if nic["pci_bus_id"]}
    if log is None or not adapters:
        return []
    events = {(one.group("address"), one.group("what").lower()) for one in EVENT.finditer(log)}
    found = [
        dict(fault(ERRORS, "fatal", "none", "%s: %s" % (adapters[address], what)), subject=adapters[address])
        for address, what in sorted(events) if address in adapters
    ]  # fmt: skip
    return [judged(ERRORS, "none", "none", found)]
