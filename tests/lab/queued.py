# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A reference system under Slurm: its hosts with their GPUs, and one that controls them.

Role slurm installs Slurm on Debian 12 and 13 only (data/slurm/packages.yml), and no replica has packages of another one. So these hosts are
Debian 12 with the stack of make demo: what is tried are the system's GPUs and settings, site with group controllers, and the job of
docs/slurm.md, not the system's distribution, CUDA and Python.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import yaml

from . import demo, hosts, paths, reference, users
from .job import Job, Step, Typed, steps
from .podman import podman
from .progress import LabError, Working
from .reference import BOOT_TIME, START, Reference

DISTRIBUTION = "debian12"
# What a system's own distribution decides, and packages that the demo's wheels do not have.
OTHERWISE = ("gpu_stack_host", "gpu_stack_profile", "python_env_packages")
# The cgroups of containers lack the controllers that confine a job. Users are alike on all hosts, as the role wants them.
SLURM = {"slurm_state": "present", "slurm_cgroups": False, "cluster_ssh_uid": 2000}
# Files of devices, behind which is nothing.
DEVICES = "for one in $(seq 0 {last}); do test -e /dev/nvidia$one || mknod -m 666 /dev/nvidia$one c 195 $one; done"
USER = f"id {users.USER} > /dev/null 2>&1 || useradd --uid {SLURM['cluster_ssh_uid']} --create-home {users.USER}"
PAGE = paths.CHECKOUT / "docs" / "slurm.md"


@dataclass(frozen=True)
class Submitted(Typed):
    """The line of docs/slurm.md, typed on the first node, for as many nodes as there are; what the job wrote says whether it trained."""

    usual: ClassVar[str] = "a minute"

    @property
    def name(self) -> str:
        return "sbatch"

    @property
    def why(self) -> str:
        return self.command

    def run(self, _job: Job) -> None:
        """Wait for the job; LabError where it did not train on all GPUs, or these are not accounted."""
        first = self.nodes.names[0]
        users.place(self.nodes.names, ["examples/train.sbatch", "examples/train_ddp.py"])
        with Working(self.command):
            done = users.typed(first, self.command, self.activate)
            number = done.stdout.split()[0] if done.stdout.split() else ""
            said = podman("exec", first, "sh", "-c", f"cat {users.HOME}/slurm-{number}.out || true")
        problem = f"ended with {done.returncode}" if done.returncode else users.shortcoming(said, self.nodes.total)
        if problem:
            raise LabError(f"`{self.command}`: {problem}:\n{done.stdout[-1000:]}{said[-3000:]}")
        print(said)
        accounted = users.typed(first, ACCOUNTED.format(number), self.activate).stdout
        print(f"As accounted:\n{accounted}")
        if f"gres/gpu={self.nodes.total}," not in accounted or "COMPLETED" not in accounted:
            raise LabError(f"job {number} is not accounted as completed with {self.nodes.total} GPUs:\n{accounted}")


ACCOUNTED = "sacct --allocations --parsable2 --format=JobID,User,State,ElapsedRaw,AllocTRES --jobs={}"


@dataclass(frozen=True)
class Queued(Reference):
    """A reference system whose last host is the controller."""

    @property
    def controller(self) -> str:
        return f"{self.lab}-{len(self.hosts) + 1}"

    @property
    def inventory(self) -> Path:
        return paths.CHECKOUT / "tests" / "output" / f"reference-{self.name}-slurm"

    @property
    def remark(self) -> str:
        """Return the differences from the system, in words."""
        return (
            f"{self.name} under Slurm: its GPUs and settings on Debian 12 with the demo's stack, since role slurm has no packages for its own"
            f" distribution; {self.controller} is the controller. GPUs are simulated, so none computes, and cgroups of containers confine nothing"
        )

    def up(self) -> None:
        """Bring nodes and controller up, and write their inventory: the system's, the demo's and that of the lab, laid over each other."""
        demo.copy_settings(self.inventory)
        (self.inventory / "hosts.yml").write_text(yaml.safe_dump(dict(self.content), sort_keys=False), encoding="utf-8")
        place, count = self.inventory / "lab.yml", len(self.hosts) + 1
        variables = {
            **SLURM,
            "nvidia_driver_boot_time_command": BOOT_TIME,
            "rdma_gpudirect": False,
            "verify_start_timeout": START,
            "train_start_timeout": START,
        }
        hosts.up(self.lab, count, place, [*self.machines, None], DISTRIBUTION, variables=variables, pythons=False)
        content = with_controller(yaml.safe_load(place.read_text(encoding="utf-8")), self.controller)
        place.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
        for name in self.hosts:
            podman("exec", name, "sh", "-c", DEVICES.format(last=self.gpus - 1))
        podman("exec", self.controller, "sh", "-c", USER)

    def job(self) -> Job:
        """Return the job that is done on them."""
        plan, site, verify, *_trained, report = steps(len(self.hosts))
        queued = ("-e", "train_launcher=slurm", "-e", f"train_nodes={len(self.hosts)}")
        return Job(
            self.inventory,
            (
                plan,
                site,
                replace(verify, options=("-e", "verify_slurm_job=true")),
                Step("train", "as a job of Slurm's on all nodes", queued, usual="a minute"),
                report,
                Submitted(documented(self.name, self.nodes), self.nodes, "true"),
                reference.AGAIN,
            ),
            f'make reference SYSTEM="{self.name} --slurm"',
        )


def get(name: str) -> Queued:
    """Return a reference system under Slurm, by the name of its inventory; LabError where there is none."""
    found = reference.get(name)
    if len(found.hosts) < 2:
        raise LabError(f"{name} has one host: name one with several, as a job runs over two")
    group = found.content["gpu_nodes"]
    # Names of their own: the system's own hosts may be there, too.
    names = tuple(f"{found.lab}-slurm-{number}" for number in range(1, len(found.hosts) + 1))
    kept = {key: value for key, value in group["vars"].items() if key not in OTHERWISE}
    own = {
        new: {key: value for key, value in (group["hosts"][old] or {}).items() if key not in OTHERWISE}
        for old, new in zip(found.hosts, names, strict=True)
    }
    return Queued(name, names, DISTRIBUTION, found.machines, {"gpu_nodes": {"hosts": own, "vars": kept}})


def with_controller(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the lab's inventory with one of its hosts as controller instead of node."""
    group = content["gpu_nodes"]
    nodes = {host: own for host, own in group["hosts"].items() if host != name}
    return {
        "gpu_nodes": {**group, "hosts": nodes},
        "controllers": {"hosts": {name: group["hosts"][name]}, "vars": group["vars"]},
    }


def documented(name: str, nodes: users.Nodes) -> str:
    """Return the command of docs/slurm.md for a system: for the nodes that there are, shorter, and waiting for the job's end."""
    text = PAGE.read_text(encoding="utf-8")
    (line,) = re.findall(rf"(?m)^\| `{re.escape(name)}` \| `(sbatch [^`]*)` \|$", text)
    line = re.sub(r"--nodes=\d+", f"--nodes={len(nodes.names)}", line)
    return re.sub(r"--epochs \d+", f"--epochs {users.EPOCHS}", line).replace("sbatch ", "sbatch --wait --parsable ", 1)
