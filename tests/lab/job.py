# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The main job on lab hosts: the playbooks a user runs, in the order a user runs them."""

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from . import paths
from .progress import LabError, say

RECAP = re.compile(r"^(\S+)\s+: .*\bchanged=(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """A playbook; still: it must change nothing."""

    playbook: str
    why: str
    options: tuple[str, ...] = ()
    still: bool = False


@dataclass(frozen=True)
class Job:
    """Steps on the hosts of an inventory; again: the command that goes on where a step failed."""

    inventory: Path
    steps: tuple[Step, ...]
    again: str

    @property
    def reports(self) -> Path:
        return self.inventory / ".reports"

    def run(self) -> None:
        """Bring the hosts from bare to trained, then print what was achieved; LabError names the step that failed."""
        for step in self.steps:
            say(f"{step.playbook}: {step.why}")
            output = self._play(step)
            if step.still and moved(output):
                raise LabError(f"{step.playbook}.yml changed something once more: {moved(output)}")
        for line in self.achieved(json.loads((self.reports / "report.json").read_text(encoding="utf-8"))):
            print(line)

    def achieved(self, report: Mapping) -> list[str]:
        """Return the last lines, from report.json."""
        return [*report["verdict"]["sentences"], f"Report: {self.reports / 'report.html'}"]

    def _play(self, step: Step) -> str:
        """Run a playbook before the user's eyes; what it printed."""
        with subprocess.Popen(
            ["ansible-playbook", f"playbooks/{step.playbook}.yml", "-i", str(self.inventory), *step.options],
            cwd=paths.CHECKOUT, env={**os.environ, "ANSIBLE_CONFIG": str(paths.CHECKOUT / "ansible.cfg")},
            stdout=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            lines = list(_shown(process.stdout))
        if process.returncode:
            raise LabError(
                f"{step.playbook}.yml ended with {process.returncode}: the lines above say why; `{self.again}` goes on from there"
            )
        return "".join(lines)


def steps(nodes: int, *train: str) -> Iterator[Step]:
    """Yield the main job's steps on a number of hosts; train: options of each training."""
    yield Step("plan", "which stack these hosts would get, and why")
    yield Step("site", "bring them to it (the first run compiles the driver: a few minutes)")
    yield Step("verify", "measure, and compare with the plan")
    yield Step("train", "on one host", ("-e", "train_nodes=1", *train))
    if nodes > 1:
        yield Step("train", f"on {nodes} hosts", ("-e", f"train_nodes={nodes}", *train))
    yield Step("report", "one page of it all")


def moved(output: str) -> dict[str, int]:
    """Return {host: changes} of the recap in a playbook's output, of those hosts that were changed."""
    return {host: int(count) for host, count in RECAP.findall(output) if int(count)}


def _shown(stream) -> Iterator[str]:
    for line in stream:
        print(line, end="", flush=True)
        yield line
