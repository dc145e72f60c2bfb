# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make bench`: the cost of a no-change `site` run on the demo's hosts, as multiples of the floor."""

import argparse
import sys

from tests.lab import hosts
from tests.lab.progress import LabError, say

from .measure import CHECKOUT, floor, playbook

INVENTORY = CHECKOUT / "inventories" / "lab"


def main():
    """Print the table; 1 when the second run still changed something."""
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("--nodes", type=int, default=2)
    nodes = parser.parse_args().nodes
    hosts.ensure_ssh_key()
    hosts.up("gpu", nodes, INVENTORY / "hosts.yml")
    say("site, so that there is nothing left to change")
    playbook("site", INVENTORY)
    say("site again, counted")
    site = playbook("site", INVENTORY)
    say("the floor: one SSH round trip and one package query per host")
    ground = floor(INVENTORY / "hosts.yml")
    print(_table(site, ground, nodes))
    moved = {host: count for host, count in site.changed.items() if count}
    if moved:
        print(f"not a no-change run: {moved}")
    return 1 if moved else 0


def _table(site, ground, nodes):
    roles = sorted({role for counts in site.executions.values() for role in counts})
    most = {role: max(counts[role] for counts in site.executions.values()) for role in roles}
    lines = [
        f"A no-change `site` run on {nodes} hosts, in multiples of the floor (SSH round trip + package query)",
        "",
        f"  {'wall time':34}{site.wall / ground.wall:8.0f} ×",
        f"  {'controller CPU per host':34}{site.cpu / ground.cpu:8.0f} ×",
        f"  {'remote module executions per host':34}{site.per_host():8d}",
        *[f"    {role.removeprefix('allreduce.gpu.'):32}{most[role]:8d}" for role in roles],
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (LabError, RuntimeError) as error:
        sys.exit(f"bench: {error}")
