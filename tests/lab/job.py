# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The full run on lab hosts: the playbooks a user runs, in the order a user runs them, and what users then type on the hosts."""

import json
import os
import re
import subprocess
import textwrap
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from . import paths, toolkit, users
from .progress import LabError, Working, say

TASK = re.compile(r"(?:TASK|RUNNING HANDLER) \[(.*?)\]")
RECAP = re.compile(r"^(\S+)\s+: .*\bchanged=(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """A playbook; usual: what it takes on two idle cores, in words; still: it must change nothing."""

    playbook: str
    why: str
    options: tuple[str, ...] = ()
    still: bool = False
    usual: str = ""

    @property
    def name(self) -> str:
        return self.playbook

    def run(self, job: "Job") -> None:
        """Run the playbook before the user's eyes; LabError when it fails, or changed what it must not."""
        with subprocess.Popen(
            ["ansible-playbook", f"playbooks/{self.playbook}.yml", "-i", str(job.inventory), *self.options],
            cwd=paths.CHECKOUT, env={**os.environ, "ANSIBLE_CONFIG": str(paths.CHECKOUT / "ansible.cfg")},
            stdout=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            output = "".join(_shown(process.stdout, self.playbook))
        if process.returncode:
            raise LabError(
                f"{self.playbook}.yml ended with {process.returncode}: the lines above say why; `{job.again}` goes on from there"
            )
        if self.still and moved(output):
            raise LabError(f"{self.playbook}.yml changed something once more: {moved(output)}")


@dataclass(frozen=True)
class Activated:
    """The environment, activated in a login shell on every node: its Python is the one that is found."""

    nodes: users.Nodes
    activate: str
    why: str = "in a login shell of the training user"
    usual: ClassVar[str] = "some seconds"

    @property
    def name(self) -> str:
        return self.activate

    def run(self, _job: "Job") -> None:
        """Activate it; LabError names the node on which another Python is found."""
        for name in self.nodes.names:
            found = users.prefix(name, self.activate)
            if found != users.ENVIRONMENT:
                raise LabError(f"after `{self.activate}` on {name}, python is that of {found}")


@dataclass(frozen=True)
class Typed:
    """A command that users know, typed on the nodes."""

    command: str
    nodes: users.Nodes
    activate: str
    usual: ClassVar[str] = "half a minute"

    @property
    def name(self) -> str:
        return self.command

    @property
    def why(self) -> str:
        return users.COMMANDS[self.command].on(self.nodes)

    def run(self, _job: "Job") -> None:
        """Train with it; LabError where it did not."""
        with Working(self.command):
            users.train(users.COMMANDS[self.command], self.nodes, self.activate)


@dataclass(frozen=True)
class Said:
    """A line of users that trains nothing, typed on the first node; what it must print is in users.LINES."""

    name: str
    nodes: users.Nodes
    activate: str
    usual: ClassVar[str] = "some seconds"

    @property
    def why(self) -> str:
        return users.LINES[self.name].why

    def run(self, _job: "Job") -> None:
        """Type it; LabError where it ends otherwise, or prints something else."""
        users.say(users.LINES[self.name], self.nodes.names[0], self.activate)


@dataclass(frozen=True)
class Equipped:
    """What compiles for GPUs, over the stubs of the lab's mirror."""

    hosts: tuple[str, ...]
    name: ClassVar[str] = "CUDA toolkit"
    why: ClassVar[str] = "nvcc, headers and NCCL that compile, over those of the lab's mirror"
    usual: ClassVar[str] = "two minutes"

    def run(self, _job: "Job") -> None:
        """Lay it out on every host."""
        with Working(self.name):
            for host in self.hosts:
                toolkit.put(host)


@dataclass(frozen=True)
class Remark:
    """A command that is not typed, and why."""

    name: str
    why: str
    usual: ClassVar[str] = ""

    def run(self, _job: "Job") -> None:
        """Do nothing: the table says it."""


Action = Step | Activated | Typed | Said | Equipped | Remark


@dataclass(frozen=True)
class Job:
    """Steps on the hosts of an inventory; again: the command that goes on where a step failed."""

    inventory: Path
    steps: tuple[Action, ...]
    again: str

    @property
    def reports(self) -> Path:
        return self.inventory / ".reports"

    def run(self) -> None:
        """Bring the hosts from bare to trained, then print what was achieved; LabError names the step that failed."""
        took: list[float | None] = []
        for step in self.steps:
            say(f"{step.name}: {step.why}" + (f" (usually {step.usual})" if step.usual else ""))
            began = time.monotonic()
            step.run(self)
            took.append(None if isinstance(step, Remark) else time.monotonic() - began)
        print(table(zip(self.steps, took, strict=True)), end="\n\n")
        for line in self.achieved(json.loads((self.reports / "report.json").read_text(encoding="utf-8"))):
            print(line)

    def achieved(self, report: Mapping) -> list[str]:
        """Return the last lines, from report.json."""
        inventory = self.inventory
        if inventory.is_relative_to(paths.CHECKOUT):
            inventory = inventory.relative_to(paths.CHECKOUT)
        # Commands and paths have lines to themselves, to be copied.
        return [
            *(line for text in report["verdict"]["sentences"] for line in textwrap.wrap(text, 80)),
            "",
            "The report is one file, for any browser:",
            f"  {self.reports / 'report.html'}",
            "Next, or any other playbook on these hosts:",
            f"  .venv/bin/ansible-playbook site.yml -i {inventory} --check --diff",
            "Again:",
            f"  {self.again}",
            "Remove everything:",
            "  make demo-down",
        ]


def steps(nodes: int, *train: str, first: str = "many minutes") -> Iterator[Step]:
    """Yield the full run's steps on a number of hosts; train: options of each training; first: what a first site usually takes."""
    yield Step("plan", "which stack these hosts would get, and why", usual="15 seconds")
    yield Step("site", "bring them to it", usual=f"{first} the first time, half a minute afterwards")
    yield Step("verify", "measure, and compare with the plan", usual="a minute")
    yield Step("train", "on one host", ("-e", "train_nodes=1", *train), usual="half a minute")
    if nodes > 1:
        yield Step("train", f"on {nodes} hosts", ("-e", f"train_nodes={nodes}", *train), usual="half a minute")
    yield Step("report", "one page of it all", usual="some seconds")


def table(rows: Iterable[tuple[Action, float | None]]) -> str:
    """Return the steps that were done, in lines: step, seconds (none of what was left out), what it was."""
    lines = [f"{'step':28}{'seconds':>8}  what"]
    for step, seconds in rows:
        lines.append(f"{step.name:28}{'-' if seconds is None else format(seconds, '.0f'):>8}  {step.why}")
    return "\n".join(lines)


def moved(output: str) -> dict[str, int]:
    """Return {host: changes} of the recap in a playbook's output, of those hosts that were changed."""
    return {host: int(count) for host, count in RECAP.findall(output) if int(count)}


def _shown(stream: Iterable[str], playbook: str) -> Iterator[str]:
    """Print and yield the lines of a playbook's output; where none comes for a minute, say which task goes on."""
    with Working(playbook) as working:
        for line in stream:
            print(line, end="", flush=True)
            task = TASK.match(line)
            working.shown(f"{playbook}: {task[1]}" if task else None)
            yield line
