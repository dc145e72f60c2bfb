# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make bench`: the cost of a no-change `site` run, on the demo's hosts, for each of them, and on one that takes everything; of
growth; of each further node; of modules gpu_health and gpu_facts; of a plan for thousands of nodes; and of a question to the resolver.
"""

import argparse
import sys
from pathlib import Path

import yaml

from tests.lab import demo, hosts, paths
from tests.lab.progress import LabError, say

from . import growth, health, mitogen, plan, questions, scale
from . import nodes as further
from .measure import floor, gathering, inventory_of, playbook

FULL, EVERY_ROLE = (Path(__file__).with_name(f"{name}.yml") for name in ("full_host", "every_role"))


def main():
    """Print the tables; 1 when a second run still changed something, or growth was not what it must be."""
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--part", action="append", choices=PARTS, help="only this one; may be repeated")
    args = parser.parse_args()
    paths.find_own_programs()
    hosts.ensure_ssh_key()
    good = [PARTS[part](args.nodes) for part in args.part or PARTS]
    return 0 if all(good) else 1


def _steady(nodes):
    inventory = _demo(nodes)
    good = _measure(f"{nodes} hosts of the demo", inventory)
    say("site again, on some of them")
    print("\n".join(["A no-change `site` run by number of hosts", *scale.table(scale.measure(inventory))]), end="\n\n")
    return good


def _everything(_nodes):
    what = "a host with 8 simulated A100, driver, fabric manager, CUDA, cuDNN, NCCL, PyTorch"
    try:
        full = _full()
        good = [
            _measure(what, *full),
            _measure(f"{what}, and the roles of {EVERY_ROLE.name}", *full, "-e", f"@{EVERY_ROLE}"),
        ]
        return all(good)
    finally:
        hosts.down("bench")


def _growth(_nodes):
    return growth.measure()


def _growth_everything(_nodes):
    return growth.measure(growth.EVERYTHING)


def _health(_nodes):
    return health.measure()


def _further(nodes):
    return further.measure(nodes)


def _plan(_nodes):
    return plan.measure(1000, 4000)


def _questions(_nodes):
    return questions.measure()


PARTS = {
    "questions": _questions,
    "plan": _plan,
    "health": _health,
    "steady": _steady,
    "everything": _everything,
    "growth": _growth,
    "growth-everything": _growth_everything,
    "nodes": _further,
}


def _demo(nodes):
    demo.up(nodes)
    return demo.INVENTORY


def _full():
    inventory = inventory_of("bench")
    path = inventory / "hosts.yml"
    hosts.up("bench", 1, path, "dgx-a100", use_mirror=True)
    # The host watches itself.
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump({**content, "controllers": content["gpu_nodes"]}), encoding="utf-8")
    return inventory, "-e", f"@{FULL}"


def _measure(what, inventory, *options):
    """Print one table; whether the counted run changed nothing."""
    say(f"{what}: site, so that there is nothing left to change")
    playbook("site", inventory, *options)
    say("site again, counted")
    site = playbook("site", inventory, *options)
    say("the floor: one SSH round trip and one package query per host")
    ground, facts = floor(inventory / "hosts.yml"), gathering(inventory)
    say("site again, under Mitogen's strategy")
    quick = mitogen.site(inventory, *options)
    print(_table(what, site, quick, ground, facts), end="\n\n")
    moved, moved_too = ({host: count for host, count in run.changed.items() if count} for run in (site, quick))
    if moved or moved_too:
        print(f"not a no-change run: {moved} and, under Mitogen, {moved_too}")
    return not (moved or moved_too)


def _table(what, site, quick, ground, facts):
    roles = sorted({role for counts in site.executions.values() for role in counts})
    most = {role: max(counts[role] for counts in site.executions.values()) for role in roles}
    lines = [
        f"A no-change `site` run on {what}, in multiples of the floor (SSH round trip + package query)",
        "",
        f"  {'wall time':34}{site.wall / ground.wall:8.0f} ×",
        f"  {'  as `ansible -m setup`':34}{site.wall / facts.wall:8.1f} ×",
        f"  {'  the same under Mitogen':34}{quick.wall / facts.wall:8.1f} ×",
        f"  {'controller CPU per host':34}{site.cpu / ground.cpu:8.0f} ×",
        f"  {'  the same under Mitogen':34}{quick.cpu / ground.cpu:8.0f} ×",
        f"  {'tasks that begin':34}{site.tasks:8d}",
        f"  {'remote module executions per host':34}{site.per_host():8d}",
        *[f"    {role.removeprefix('allreduce.gpu.'):32}{most[role]:8d}" for role in roles],
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (LabError, RuntimeError) as error:
        sys.exit(f"bench: {error}")
