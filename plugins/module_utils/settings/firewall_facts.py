# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gather the state of a node's firewall, as ``ansible_facts.gpu_firewall``."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import re

from ..host import firewalld, nft, ufw

RECORD = "/var/lib/allreduce/firewall.json"
PORT_RANGE = "/proc/sys/net/ipv4/ip_local_port_range"
RESERVED = "/proc/sys/net/ipv4/ip_local_reserved_ports"
SOCKETS = ["systemctl", "show", "ssh.socket", "sshd.socket", "--property=ActiveState,Listen"]


def read_firewall(tree, run):
    """Return the whole fact. ``run`` takes an argument list and returns the program's output, or None where it cannot run."""
    listed, reserved = run(nft.LIST), words(tree.text(RESERVED))
    ruleset = nft.objects(listed)
    return {
        "recorded": tree.exists(RECORD),
        "firewalld": firewalld.read(run),
        "ufw": ufw.read(tree, run),
        "nft": dict(nft.loaded(ruleset), installed=listed is not None, closed=nft.closed(ruleset)),
        "kernel": {
            "port_range": words(tree.text(PORT_RANGE)),
            "reserved": reserved,
            "reserved_before": recorded_value(tree, RESERVED, reserved),
        },
        "interfaces": parse_addresses(run(["ip", "-j", "address", "show"])),
        "ssh_ports": sorted(set(parse_listeners(run(["ss", "-Hltnp"])) + parse_sockets(run(SOCKETS)))),
        "selinux": {"1": "enforcing", "0": "permissive"}.get(tree.text("/sys/fs/selinux/enforce")),
    }


def recorded_value(tree, path, running):
    """Return the value before the first change; the running one where nothing was changed."""
    try:
        return json.loads(tree.text(RECORD) or "{}").get("values", {}).get(path, running)
    except ValueError:  # module firewall says so
        return running


def words(text):
    return None if text is None else " ".join(text.split())


def parse_addresses(text):
    """Return {interface: addresses} without the loopback's; those that IPv6 changes every day are left out."""
    found = {}
    for link in json.loads(text or "[]"):
        if "LOOPBACK" not in link.get("flags", []) and link.get("ifname"):
            held = [one for one in link.get("addr_info", []) if one.get("local") and not one.get("temporary")]
            found[link["ifname"]] = [one["local"] for one in held]
    return found


def parse_listeners(text):
    """Return the ports of sshd, from ``ss -Hltnp``."""
    found = []
    for line in (text or "").splitlines():
        columns = line.split()
        if len(columns) > 3 and re.search(r'"sshd[\w-]*"', line):
            found.append(int(columns[3].rpartition(":")[2]))
    return found


def parse_sockets(text):
    """Return the ports that systemd listens on for sshd."""
    found = []
    for block in re.split(r"\n\s*\n", text or ""):
        if re.search(r"(?m)^ActiveState=active$", block):
            found += [int(port) for port in re.findall(r"(?m)^Listen=\S*?(?::|^)?(\d+) \(Stream\)", block)]
    return found
