# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gather how a node's traffic is shaped, as ``ansible_facts.gpu_qos``, and what its kernel supports."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json

from ..host import tc

RECORD = "/var/lib/allreduce/qos.json"
FAMILY, TABLE = "inet", "allreduce_qos"
TABLE_SHOW = ["nft", "-j", "list", "table", FAMILY, TABLE]
COMMENT = "allreduce.gpu"
CGROUPS = "/sys/fs/cgroup"
# In a network namespace of its own, the node's interfaces stay as they are; the kernel loads its modules for that, too.
APART = ["unshare", "--net"]
PROBES = {
    "htb": ["tc", "qdisc", "add", "dev", "lo", "root", "handle", "1:", "htb"],
    "fq_codel": ["tc", "qdisc", "add", "dev", "lo", "root", "handle", "1:", "fq_codel"],
    "ifb": ["ip", "link", "add", "name", "probe0", "type", "ifb"],
}


def read_qos(tree, run, cgroups=(), probe=False):
    """Return the whole fact. ``run`` takes an argument list and returns the program's output, or None where it cannot run."""
    live = read_live(run)
    return {
        "recorded": tree.exists(RECORD),
        "tc": run(["tc", "-V"]) is not None,
        "nft": run(["nft", "--version"]) is not None,
        "interfaces": read_interfaces(tree, run(["ip", "-j", "address", "show"]), live),
        "table": parse_digest(run(TABLE_SHOW)),
        "cgroups": [one for one in cgroups if tree.is_directory("%s/%s" % (CGROUPS, one))],
        "kernel": read_kernel(run) if probe else {},
    }


def read_kernel(run):
    """Return {capability: whether this kernel has it}, None where that cannot be tried."""
    if run(APART + ["true"]) is None:
        return dict.fromkeys(PROBES)
    return {name: run(APART + command) is not None for name, command in PROBES.items()}


def read_interfaces(tree, addresses, live):
    """Return {interface: {addresses, speed in Mbit/s or None, shaped: of read_live()}} without the loopback's."""
    found = {}
    for link in json.loads(addresses or "[]"):
        name = link.get("ifname")
        if name and "LOOPBACK" not in link.get("flags", []):
            held = [one["local"] for one in link.get("addr_info", []) if one.get("local") and not one.get("temporary")]
            found[name] = {"addresses": held, "speed": read_speed(tree, name), "shaped": live.get(name)}
    return found


def read_speed(tree, name):
    """Return Mbit/s; None for a link that is down, or whose speed is not known."""
    speed = tree.number("/sys/class/net/%s/speed" % name)
    return speed if speed and speed > 0 else None


def read_live(run):
    """Return {interface: {root, restorable, ingress, classes, leaf, redirect, filters}} as the kernel has it."""
    found = {}
    for name, entry in tc.parse_qdiscs(run(tc.QDISCS)).items():
        ours = tc.is_ours(entry["root"])
        leaves = sorted({one["kind"] for one in entry["children"]}) if ours else []
        found[name] = {
            "root": entry["root"],
            "restorable": tc.is_restorable(entry),
            "ingress": entry["ingress"],
            "classes": tc.parse_classes(run(tc.CLASSES + [name])) if ours else [],
            "leaf": leaves[0] if len(leaves) == 1 else "",
            "redirect": tc.parse_redirect(run(tc.FILTERS + [name, "ingress"])) if entry["ingress"] else None,
            "filters": tc.count_filters(run(tc.FILTERS + [name])) if ours else 0,
        }
    return found


def parse_digest(text):
    """Return the digest that our table carries, None where it is not loaded."""
    try:
        found = json.loads(text or "{}").get("nftables") or []
    except ValueError:
        return None
    comments = [one["rule"].get("comment") or "" for one in found if "rule" in one]
    digests = [one[len(COMMENT) + 1 :] for one in comments if one.startswith(COMMENT + " ")]
    return digests[0] if digests else None
