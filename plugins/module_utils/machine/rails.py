# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find a node's rails, and those that are down or slow: pure functions of what was read."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from .problems import problem
from .topology import NEAR, active_ports, gpu_label

# The places of an adapter at one kind of adapter: near a GPU below a PCIe switch, elsewhere, or not known.
BELOW_SWITCH, ELSEWHERE = "switch", "elsewhere"


def training_class(gpus, nics, topology):
    """Return (link layer, rate) that the node's rails have; None where no port is up.

    It is the fastest, then the one of more adapters. Adapters below PCIe switches with GPUs are rails in spite of faster ones
    elsewhere where they carry more together: such as eight of 200 Gbit/s next to one of 400 for storage.
    """
    classes = {}
    for nic in nics:
        for port in active_ports(nic):
            members = classes.setdefault((port["link_layer"], port["rate_gbps"]), [])
            if nic not in members:
                members.append(nic)
    if not classes:
        return None
    fastest = max(classes, key=lambda one: (one[1] or 0, len(classes[one]), one[0] == "InfiniBand", str(one[0])))
    places = {one: [place(gpus, nic, topology) for nic in members] for one, members in classes.items()}
    if set(places[fastest]) != {ELSEWHERE}:
        return fastest
    sums = {one: (one[1] or 0) * places[one].count(BELOW_SWITCH) for one in classes}
    best = max(sorted(sums, key=str), key=lambda one: sums[one])
    return best if sums[best] > (fastest[1] or 0) * len(classes[fastest]) else fastest


def place(gpus, nic, topology):
    """Return where an adapter is; None where a distance that could tell was not measured."""
    codes = {topology.get(gpu_label(gpu), {}).get(nic["name"]) for gpu in gpus}
    if codes.intersection(NEAR):
        return BELOW_SWITCH
    return None if None in codes else ELSEWHERE


def rail_ports(gpus, nics, topology):
    """Return [(adapter, port)] of the ports that are up and of the class of the rails, at the place of the rails.

    Adapters below a GPU's PCIe switch are rails where there are any; where a distance is unknown, nothing is said by distance, and
    nothing by a rate that is.
    """
    wanted = training_class(gpus, nics, topology)
    found = [(nic, port) for nic in nics for port in active_ports(nic) if is_of(port, wanted)]
    places = [place(gpus, nic, topology) for nic, dummy in found]
    if BELOW_SWITCH in places and None not in places:
        found = [pair for pair, where in zip(found, places) if where == BELOW_SWITCH]
    return found


def is_of(port, wanted):
    """Return True if a port may be one of a class, (link layer, rate)."""
    return port["link_layer"] == wanted[0] and port["rate_gbps"] in (wanted[1], None)


def rail_problems(gpus, nics, topology):
    """Find ports that are down, or slower than the rails that are their equals.

    Equals have the same link layer, port number, function of the card and place, and are the same model as far as that is known:
    second ports without a cable are not rails. Below PCIe switches at least as many must be well as are not, elsewhere more, and
    of a known model: nothing else there tells a rail from an adapter for storage.
    """
    groups = {}
    for nic, port in rail_ports(gpus, nics, topology):
        groups.setdefault(_kind(gpus, nic, port, topology), []).append((nic, port))
    found = []
    for code, is_bad in (("rail_down", _is_down), ("rail_slow", _is_slow)):
        bad = {}
        for nic in nics:
            for port in nic["ports"]:
                kind = _kind(gpus, nic, port, topology)
                if kind in groups and is_bad(nic, port, groups[kind]):
                    bad.setdefault(kind, []).append((nic, port))
        for kind, pairs in bad.items():
            if _may_be_judged(kind, len(groups[kind]), len(pairs)):
                found += [_problem(code, nic, port, groups[kind]) for nic, port in pairs]
    return found


def _kind(gpus, nic, port, topology):
    function = (nic["pci_bus_id"] or "").rpartition(".")[2]
    return place(gpus, nic, topology), port["link_layer"], port["port"], function, nic.get("pci_device_id")


def _may_be_judged(kind, well, bad):
    where, dummy_layer, dummy_port, dummy_function, model = kind
    if where == BELOW_SWITCH:
        return well >= bad
    return where == ELSEWHERE and model is not None and well > bad


def _is_down(nic, port, rails):
    """Return True if a port is known not to be up, on a card of which no other port is, or as the first of several.

    Of these another may have the cable instead, unless all that are its equals have more ports in use.
    """
    if port["state"] in (None, "ACTIVE"):
        return False
    used, first = len(active_ports(nic)), min(one["port"] for one in nic["ports"])
    return not used or port["port"] == first and used < min(len(active_ports(other)) for other, dummy in rails)


def _is_slow(dummy_nic, port, rails):
    rail = rails[0][1]
    return (
        port["state"] == "ACTIVE"
        and (port["rate_gbps"] or 0) < (rail["rate_gbps"] or 0)
        and port["rate_gbps"] is not None
    )


def _problem(code, nic, port, rails):
    names = [one["name"] for one, dummy in rails]
    return problem(
        code,
        nic["name"],
        port=port["port"],
        state=port["state"],
        rate=port["rate_gbps"],
        expected=rails[0][1]["rate_gbps"],
        peers=", ".join(names),
    )
