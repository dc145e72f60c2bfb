# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The main job on the lab: hosts up, then the playbooks a user runs, in the order a user runs them."""

import json
import os
import subprocess

from . import paths
from .progress import LabError, say

INVENTORY = paths.CHECKOUT / "inventories" / "lab"
REPORTS = INVENTORY / ".reports"
MACHINE = "a100-nvlink"  # what its hosts are: 4 x A100 40 GB, simulated


def run(nodes):
    """Bring the NODES hosts of INVENTORY from bare to trained; LabError names the step that failed."""
    for playbook, why, *options in _steps(nodes):
        say(f"{playbook}: {why}")
        done = subprocess.run(
            ["ansible-playbook", f"playbooks/{playbook}.yml", "-i", str(INVENTORY), *options],
            cwd=paths.CHECKOUT, check=False, env={**os.environ, "ANSIBLE_CONFIG": str(paths.CHECKOUT / "ansible.cfg")},
        )  # fmt: skip
        if done.returncode:
            raise LabError(
                f"{playbook}.yml ended with {done.returncode}: the lines above say why; `make demo` goes on from there"
            )
    for line in achieved(json.loads((REPORTS / "report.json").read_text(encoding="utf-8"))):
        print(line)


def _steps(nodes):
    yield "plan", "which stack these hosts would get, and why"
    yield "site", "bring them to it (the first run compiles the driver: a few minutes)"
    yield "verify", "measure, and compare with the plan"
    yield "train", "on one host", "-e", "train_nodes=1"
    if nodes > 1:
        yield "train", f"on {nodes} hosts", "-e", f"train_nodes={nodes}"
    yield "report", "one page of it all"


def achieved(report):
    """The last lines of the demo, from report.json."""
    return [*report["verdict"]["sentences"], f"Report: {REPORTS / 'report.html'}"]
