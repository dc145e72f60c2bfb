# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The full run of a reference system: its inventory, on hosts that answer like its systems and have the GPUs it describes.

Afterwards the commands that its users know are typed on these hosts (users.py).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from . import hosts, paths, replicas, users, wheels
from .job import Action, Activated, Equipped, Job, Remark, Said, Step, Typed, steps
from .nvml import machines
from .progress import LabError

INVENTORIES = paths.CHECKOUT / "inventories"
NODES = 2  # of an inventory with more: two train over a network as many do
# What the lab cannot have as the profile asks for it. PyTorch's own index is out of its reach; the plain package index has
# one CUDA build of each release, too. Horovod must be compiled with the CUDA of PyTorch and TensorFlow: the build for
# TensorFlow's is in PyTorch's index only. So the lab plans it beside TensorFlow alone, after the rest, on the same hosts: the
# NCCL for it is there from the first run on, and no package that would bring PyTorch back.
REQUEST = {"pytorch_index": "pypi"}
REQUESTS = {"a40-ubuntu2004": {"horovod": "none", "nccl": "latest"}}
HOROVOD = {
    "a40-ubuntu2004": {"gpu_stack_request": {"pytorch": "none"}, "python_env_packages": ["catboost"], "stack_lock": ""}
}
# How users start torchrun, where not by rank and address of each node, and the systems whose users know mpirun.
TORCHRUN = {"a40-ubuntu2004": "torchrun on one node", "a100-el8": "torchrun with c10d"}
MPIRUN = ("a100-ubuntu2204",)
AGAIN = Step("site", "once more: nothing is left to change", still=True, usual="half a minute")
START = 600  # seconds until all ranks run: two processors and one disk read several GB of libraries for each of them
BOOT_TIME = "stat -c %Y /proc/1"  # containers see the boot id of the machine they run on


@dataclass(frozen=True)
class Reference:
    """A reference system in the lab: host names, the replica they are and the simulated machine of each."""

    name: str
    hosts: tuple[str, ...]
    distribution: str
    machines: tuple[str, ...]
    content: Mapping

    @property
    def lab(self) -> str:
        return self.hosts[0].rpartition("-")[0]

    @property
    def inventory(self) -> Path:
        return paths.CHECKOUT / "tests" / "output" / f"reference-{self.name}"

    @property
    def request(self) -> dict[str, str]:
        """Return the request that is laid over the profile."""
        return {**REQUEST, **REQUESTS.get(self.name, {})}

    @property
    def remark(self) -> str:
        """Return the differences from the inventory, in words."""
        laid = ", ".join(f"{name}: {value}" for name, value in self.request.items())
        later = "Horovod follows, with TensorFlow and without PyTorch; " if self.name in HOROVOD else ""
        return (
            f"{self.name} as its inventory asks for it, but with {laid}: PyTorch's own index is out of the lab's reach; {later}"
            f"GPUs and adapters are simulated, so none computes or transfers: ranks use the processor, {self.ranks} on each host"
        )

    def up(self) -> None:
        """Bring the hosts up, and write their inventory: the system's own, the lab's connection laid over it."""
        if self.name in HOROVOD:
            wheels.ensure("horovod-cuda")
        shutil.copytree(INVENTORIES / self.name, self.inventory, dirs_exist_ok=True, ignore=_left)
        text = yaml.safe_dump(dict(self.content), sort_keys=False)
        (self.inventory / "hosts.yml").write_text(text, encoding="utf-8")
        hosts.up(
            self.lab,
            len(self.hosts),
            self.inventory / "lab.yml",
            self.machines,
            self.distribution,
            variables={
                "gpu_stack_request": self.request,
                "nvidia_driver_boot_time_command": BOOT_TIME,
                "verify_gpu_compute": False,
                "rdma_gpudirect": False,
                "verify_nproc_per_node": str(self.ranks),
                "verify_collectives_timeout": 2 * START,
                "verify_start_timeout": START,
                "train_start_timeout": START,
            },
            wheel_set=self.name,
        )

    def job(self) -> Job:
        """Return the job that is done on them. Ranks are told: a build for CUDA refuses to count those of a node where no GPU computes."""
        ranks = ("-e", f"train_nproc_per_node={self.ranks}")
        *most, report = steps(len(self.hosts), *ranks)
        if self.name in MPIRUN:
            options = ("-e", "train_launcher=mpirun", *ranks)
            # Before the other one on all hosts: the report compares the newest of these with the one on a single host.
            most.insert(-1, Step("train", "with Open MPI", options, usual="a minute"))
        done = (*most, report, *self.typed(), AGAIN, *self.compiled())
        return Job(self.inventory, done, f"make reference SYSTEM={self.name}")

    def typed(self) -> Iterator[Action]:
        """Yield the commands that its users type, with as many ranks on each host as it has GPUs."""
        nodes, activate = self.nodes, self.activate
        yield Activated(nodes, activate)
        yield Typed(TORCHRUN.get(self.name, "torchrun"), nodes, activate)
        for name in self.content["gpu_nodes"]["vars"].get("python_env_packages", []):
            yield Said(name, nodes, activate)
        if self.name not in HOROVOD:
            yield Remark("horovodrun", "its profile has no Horovod")
        if self.name in MPIRUN:
            yield Typed("mpirun", nodes, activate)
        else:
            yield Remark("mpirun", "its users start nothing with it, and its hosts have no Open MPI")

    def compiled(self) -> Iterator[Action]:
        """Yield what is done for Horovod, where the profile has it: real compilers for GPUs, the roles, the commands, the roles again."""
        if self.name not in HOROVOD:
            return
        options = ("-e", json.dumps(HOROVOD[self.name]))
        yield Equipped(self.hosts)
        yield Step("site", "with Horovod for TensorFlow, which this compiles", options, usual="ten minutes")
        yield Step("verify", "measure, and compare with this plan", options, usual="a minute")
        yield Said("horovodrun --check-build", self.nodes, self.activate)
        yield Typed("horovodrun on one node", self.nodes, self.activate)
        yield replace(AGAIN, options=options)

    @property
    def nodes(self) -> users.Nodes:
        return users.Nodes(self.hosts, self.gpus)

    @property
    def activate(self) -> str:
        """Return the line with which users take the environment."""
        return users.LOAD if self.content["gpu_nodes"]["vars"].get("python_env_modulefiles") else users.ACTIVATE

    @property
    def gpus(self) -> int:
        """Return the number of GPUs of the first host; the others have as many."""
        return len(machines.named(self.machines[0]).gpus)

    @property
    def ranks(self) -> int:
        """Return the number of ranks that a host trains with, and checks collectives with: a host alone as many as it has GPUs."""
        return 1 if len(self.hosts) > 1 else self.gpus


def names() -> list[str]:
    """Return the inventories that describe their hosts."""
    described = (path.parent.name for path in INVENTORIES.glob("*/hosts.yml") if "gpu_stack_host" in path.read_text())
    return sorted(described)


def get(name: str) -> Reference:
    """Return a reference system by the name of its inventory; LabError where there is none, or the lab cannot be it."""
    if name not in names():
        raise LabError(f"there is no reference system {name!r}: use one of {', '.join(names())}")
    content = yaml.safe_load((INVENTORIES / name / "hosts.yml").read_text(encoding="utf-8"))
    group = content["gpu_nodes"]
    kept = dict(list(group["hosts"].items())[:NODES])
    described = [{**group["vars"], **(own or {})}["gpu_stack_host"] for own in kept.values()]
    systems = {host["os"] for host in described}
    if len(systems) > 1:
        raise LabError(f"the hosts of {name} have several systems ({', '.join(sorted(systems))}): a lab has one")
    return Reference(
        name, tuple(kept), _distribution(systems.pop()), tuple(_machine(host["gpus"]) for host in described),
        {"gpu_nodes": {**group, "hosts": kept}},
    )  # fmt: skip


def _distribution(system: str) -> str:
    """Return the lab's distribution for a system as an inventory names it (`rocky 8.10`)."""
    found, version = system.split()
    for name in replicas.names():
        release = replicas.get(name).os_release
        if release and (release["ID"], release["VERSION_ID"]) == (found, version):
            return name
    raise LabError(f"the lab has no {system}: it has {', '.join(replicas.names())}")


def _machine(gpus: list[str]) -> str:
    """Return the name of the simulated machine with these GPUs and no NVSwitch."""
    for machine in (make() for make in machines.MACHINES):
        if sorted(gpu.model.name for gpu in machine.gpus) == sorted(gpus) and not machine.nvswitches:
            return machine.name
    raise LabError(f"no simulated machine has {', '.join(gpus)}: add one to tests/lab/nvml/machines.py")


def _left(_directory: str, found: list[str]) -> set[str]:
    """Return the names in an inventory that stay where they are: files that former runs left there."""
    return {name for name in found if name.startswith(".") or name in ("stack.lock.yml", "python.locks")}
