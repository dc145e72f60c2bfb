# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated machines as Slurm sees them: what our modules measure of one, and what Slurm's own NVML plugin makes of its GPUs."""

import copy
import os
import re
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

from ansible_collections.allreduce.gpu.plugins.module_utils.machine import gpu_node
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.slurm import read_slurm
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.subject import Node

from tests.lab.nvml import machines, recording


@dataclass(frozen=True, order=True)
class Gres:
    """What Slurm makes of a GPU or of an instance of one."""

    type: str
    files: str
    links: str


def expected(machine):
    """What Slurm is to detect: names in lower case with underscores, links counted, -1 for the GPU itself."""
    found = []
    for gpu in machine.gpus:
        name, device = gpu.model.name.lower().replace(" ", "_"), f"/dev/nvidia{gpu.minor}"
        if gpu.mig:
            found += _instances(machine, gpu, name.partition("-")[0], device)
            continue
        remotes = [remote for _kind, remote in gpu.links]
        counts = ["-1" if other is gpu else str(remotes.count(other.address)) for other in machine.gpus]
        found.append(Gres(name, device, ",".join(counts)))
    return found


def _instances(machine, gpu, name, device):
    """An instance has two device files of its own, and no links."""
    numbers = {text: number for number, text in enumerate(recording.capabilities(machine), 1)}
    for part in gpu.mig:
        place = f"gpu{machine.gpus.index(gpu)}/gi{part.gpu_instance}"
        caps = [numbers[f"{place}/access"], numbers[f"{place}/ci0/access"]]
        files = [device, *(f"/dev/nvidia-caps/nvidia-cap{cap}" for cap in caps)]
        slices, memory = part.name.rpartition(" ")[2].split("g.")[0], (part.memory_mib + 512) // 1024
        yield Gres(f"{name}_{slices}g.{memory}gb", ",".join(files), "(null)")


@cache
def measured(name):
    """The facts of a simulated machine; its host name is gpu-1."""
    machine = machines.named(name)
    with TemporaryDirectory() as folder:
        root = Path(folder)
        recording.record(machine, root)
        recording.write_processors(machine, root / "sys")
        (root / "proc" / "sys" / "kernel").mkdir(parents=True)
        (root / "proc" / "sys" / "kernel" / "hostname").write_text("gpu-1.example.org\n", encoding="utf-8")
        library = str(recording.build_library(root / "libnvidia-ml.so.1")) if machine.library else "libnone.so.1"
        with mock.patch.dict(os.environ, {"SIMULATED_NVML": str(root / "profile")}):
            found = gpu_node.measure(FileTree(str(root / "sys")), FileTree(str(root / "proc")), library)
        return {"gpu_node": found, "gpu_slurm": read_slurm(FileTree(folder), "/etc/slurm")}


def unfolded(hosts):
    """The names of a list of hosts, for lists of sensible length."""
    names = []
    for part in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", hosts):
        pieces = re.split(r"\[([^\]]*)\]", part)
        choices = [_numbers(piece) if place % 2 else [piece] for place, piece in enumerate(pieces)]
        names += ["".join(words) for words in product(*choices)]
    return names


def _numbers(ranges):
    found = []
    for one in ranges.split(","):
        first, _dash, last = one.partition("-")
        found += [str(number).zfill(len(first)) for number in range(int(first), int(last or first) + 1)]
    return found


GROUPS = {"gpu_nodes": ["gpu-1", "gpu-2"], "controllers": ["ctl"]}


def cluster_hosts(login=False, **variables):
    """The variables of a controller and two equal nodes, perhaps of a host that users log in to."""
    found = {}
    for place, name in enumerate(("ctl", "gpu-1", "gpu-2", *(["login"] if login else [])), 1):
        facts = copy.deepcopy(measured("a40-pcie"))
        facts["gpu_slurm"].update(name=name, confines=True)
        facts.update(distribution="Debian", distribution_version="13.1", os_family="Debian")
        facts["gpu_node_state"] = {"packages": {}, "records": [], "services": {}}
        found[name] = {
            "slurm_state": "present", "gpu_cluster_address": f"10.0.0.{place}", **variables, "ansible_facts": facts,
        }  # fmt: skip
    return found


def cluster_node(known, name="ctl"):
    """One of them, as the subject sees it."""
    groups = {**GROUPS, "login_nodes": ["login"] if "login" in known else []}
    return Node(name, known[name], known[name]["ansible_facts"], known, groups)
