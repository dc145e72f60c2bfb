# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read which interface has the cluster address of a node, and what else leads into its subnet. Changes nothing."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import ipaddress
import json

ADDRESSES = ["ip", "-j", "address", "show", "up"]
SETTINGS = "/proc/sys/net/ipv4/conf/%s/%s"
# Of each, the higher value of all interfaces and of the one counts (Documentation/networking/ip-sysctl.rst).
ARP = ("arp_announce", "arp_ignore", "rp_filter")


def read_link(tree, listed, address):
    """Return the interface that has the address: {interface, mtu, speed, lower, shared}.

    listed: what ``ip -j address`` printed, or None; interface is None where none has the address. speed: Mbit/s, None where the
    kernel does not know it; lower: {device below it, such as a member of a bond: MTU}; shared: {interface: {setting: value}} of
    every interface with an address in the same subnet, empty where there is one only.
    """
    interfaces = parse_addresses(listed)
    own = next((one["name"] for one in interfaces if address in one["addresses"]), None)
    if own is None:
        return {"interface": None, "mtu": None, "speed": None, "lower": {}, "shared": {}}
    place = "/sys/class/net/"
    speed = tree.number(place + own + "/speed")
    lower = [name[len("lower_") :] for name in tree.names(place + own) if name.startswith("lower_")]
    neighbours = sharing(interfaces, address)
    return {
        "interface": own,
        "mtu": next(one["mtu"] for one in interfaces if one["name"] == own),
        "speed": speed if speed is not None and speed > 0 else None,
        "lower": {name: tree.number(place + name + "/mtu") for name in lower},
        "shared": {name: arp_settings(tree, name) for name in neighbours} if len(neighbours) > 1 else {},
    }


def parse_addresses(listed):
    """Return [{name, mtu, addresses: {address: prefix length}}] of what ``ip -j address`` printed."""
    try:
        found = json.loads(listed or "[]")
    except ValueError:
        found = []
    return [
        {
            "name": one["ifname"],
            "mtu": one["mtu"],
            "addresses": {part["local"]: part["prefixlen"] for part in one.get("addr_info") or [] if "local" in part},
        }
        for one in found
        if one.get("ifname")  # some releases print empty objects for what does not match
    ]


def sharing(interfaces, address):
    """Return the names of the interfaces with an address in the subnet of ADDRESS, sorted."""
    subnets = [
        ipaddress.ip_interface("%s/%d" % (address, one["addresses"][address])).network
        for one in interfaces
        if address in one["addresses"]
    ]
    return sorted(
        one["name"]
        for one in interfaces
        if any(ipaddress.ip_address(other) in subnet for subnet in subnets for other in one["addresses"])
    )


def arp_settings(tree, interface):
    """Return {setting: the value that counts} of an interface; None where the kernel does not have it."""
    found = {}
    for key in ARP:
        values = [tree.number(SETTINGS % (name, key)) for name in ("all", interface)]
        found[key] = None if None in values else max(values)
    return found
