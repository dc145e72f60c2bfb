# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read firewalld's running state: our policy, its sets, and what a reload would lose."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

POLICY = "allreduce"
SET = "allreduce-peers%d"
POLICY_FILE = "/etc/firewalld/policies/allreduce.xml"
SET_FILE = "/etc/firewalld/ipsets/allreduce-peers%d.xml"
CLIENT = "firewall-cmd"
# Interfaces come and go with devices, and programs that make bridges put them into zones.
FLEETING = ("interfaces",)


def read(run):
    """Return {active, version, unsaved, peers, policy}; the client fails where the service does not run."""
    if (run([CLIENT, "--state"]) or "").strip() != "running":
        return {"active": False, "version": None, "unsaved": [], "peers": None, "policy": False}
    policy = POLICY in (run([CLIENT, "--get-policies"]) or "").split()
    found = [run([CLIENT, "--ipset=" + SET % version, "--get-entries"]) for version in (4, 6)] if policy else []
    zones = [parse_zones(run([CLIENT] + more + ["--list-all-zones"]) or "") for more in ([], ["--permanent"])]
    return {
        "active": True,
        "version": (run([CLIENT, "--version"]) or "").strip() or None,
        "unsaved": sorted(zone for zone, lines in zones[0].items() if zones[1].get(zone) != lines),
        "peers": sorted(" ".join(found).split()) if policy and None not in found else None,
        "policy": policy,
    }


def parse_zones(text):
    """Return {zone: [lines]} of ``--list-all-zones``, without what comes and goes with devices."""
    zones, zone = {}, None
    for line in text.splitlines():
        if line and not line[0].isspace():
            zone = zones.setdefault(re.sub(r"\s*\(.*\)$", "", line).strip(), [])
        elif zone is not None and line.strip() and line.strip().split(":")[0] not in FLEETING:
            zone.append(" ".join(line.split()))
    return zones
