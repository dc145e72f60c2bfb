# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node as Slurm counts it, derived from what was measured of the machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....module_utils.host.interrupts import members
from ...documents.gpu_node import Gpu, GpuNode
from ...documents.slurm import Place, SlurmNode
from ...problems.problem import Problem, ProblemError
from .request import WORD, Request, is_node_name, type_name

DEVICE, CAPABILITY = "/dev/nvidia", "/dev/nvidia-caps/nvidia-cap"
GIB = 1024  # MiB


@dataclass(frozen=True)
class Device:
    """A GPU or MIG instance that jobs can be given. cores: Slurm's numbers, empty for any; links: to each GPU, empty for an instance."""

    type: str
    files: tuple[str, ...]
    cores: str = ""
    links: str = ""


@dataclass(frozen=True)
class SlurmModel:
    """A node in Slurm's words; cores: of a socket; threads: of a core; memory: MiB that jobs can be given.

    splits: whether a GPU is near a part of a socket only; address: where slurmctld reaches it, empty for that of its name.
    """

    name: str
    sockets: int
    cores: int
    threads: int
    memory: int
    devices: tuple[Device, ...] = ()
    features: tuple[str, ...] = ()
    splits: bool = False
    address: str = ""

    @property
    def processors(self) -> int:
        """Return how many there are."""
        return self.sockets * self.cores * self.threads


def model(host: str, measured: SlurmNode, machine: GpuNode, wanted: Request) -> SlurmModel:
    """Return the node; raise ProblemError for one that Slurm would take for something else. host: its name in the inventory."""
    if not is_node_name(measured.name):
        raise ProblemError(Problem("slurm_no_node_name", host, {"name": measured.name}))
    expected = wanted.node_name or host.partition(".")[0]
    if measured.name.lower() != expected.lower():  # else a node could take the jobs of another
        raise ProblemError(Problem("slurm_other_name", host, {"name": measured.name, "expected": expected}))
    sockets = sockets_of(host, measured.places, wanted.numa_node_as_socket)
    memory = memory_of(measured.memory_kib or 0, wanted.margin)
    # DefMemPerCPU=0, without 1 MiB for each processor, would be no limit, for the jobs of all nodes.
    if memory < sum(place.cores * (place.threads or 1) for place in measured.places):
        raise ProblemError(Problem("slurm_no_memory", host))
    devices = tuple(_devices(host, measured, machine, sockets, wanted))
    if not all(one.cores for one in devices):  # Slurm wants them for all or for none
        devices = tuple(replace(one, cores="") for one in devices)
    if wanted.autodetect == "nvidia" and any(len(one.files) > 1 for one in devices):
        raise ProblemError(Problem("slurm_undetected_instances", host))
    return SlurmModel(
        name=measured.name,
        sockets=len(sockets),
        cores=sum(place.cores for place in sockets[0]),
        threads=sockets[0][0].threads or 1,
        memory=memory,
        devices=devices,
        features=tuple(dict.fromkeys([*_features(host, machine, wanted), *wanted.features])),
        splits=any(_is_part(gpu, sockets) for gpu in machine.gpus),
    )


def sockets_of(host: str, places: tuple[Place, ...], by_numa_node: bool) -> list[list[Place]]:
    """Return the sockets as Slurm counts them, in its order: packages, or NUMA nodes with SlurmdParameters=numa_node_as_socket.

    All have equally many cores and threads: Slurm divides (src/slurmd/common/xcpuinfo.c, xcpuinfo_hwloc_topo_get).
    """
    found: dict[tuple[int, int | None], list[Place]] = {}
    for place in places:
        found.setdefault((place.package, place.node if by_numa_node else None), []).append(place)
    sockets = list(found.values())
    cores = {sum(place.cores for place in socket) for socket in sockets}
    threads = {place.threads for place in places}
    if not places:
        raise ProblemError(Problem("slurm_no_processors", host))
    if len(cores) > 1 or len(threads) > 1 or not all(threads) or not all(cores):
        raise ProblemError(Problem("slurm_uneven", host))
    return sockets


def memory_of(kib: int, margin: int) -> int:
    """Return MiB without the margin; whole GiB, so that nodes which differ by what their kernels keep are one line."""
    mib = kib // 1024 * (100 - margin) // 100
    return mib // GIB * GIB or mib


def _devices(
    host: str, measured: SlurmNode, machine: GpuNode, sockets: list[list[Place]], wanted: Request
) -> Iterator[Device]:
    """Yield the instances and whole GPUs, in the order of NVML; a GPU that is cut up and has no instance is left out."""
    for gpu in machine.gpus:
        if not gpu.name or gpu.minor_number is None:
            raise ProblemError(Problem("slurm_no_device", gpu.label, {"host": host}))
        cores = cores_near(gpu, sockets)
        if gpu.mig.current:
            yield from _instances(host, measured, gpu, cores)
        else:
            yield Device(_kind(host, gpu, wanted), (f"{DEVICE}{gpu.minor_number}",), cores, links(gpu, machine))


def _instances(host: str, measured: SlurmNode, gpu: Gpu, cores: str) -> Iterator[Device]:
    """Yield the MIG instances, named and with the files that Slurm's plugin gives them (src/plugins/gpu/nvml/gpu_nvml.c)."""
    for one in gpu.mig.instances:
        gpu_instance = f"gpu{gpu.minor_number}/gi{one.get('gpu_instance_id')}"
        paths = [f"{gpu_instance}/access", f"{gpu_instance}/ci{one.get('compute_instance_id')}/access"]
        numbers = [measured.capabilities.get(path) for path in paths]
        profile = type_name(str(one.get("name") or "")).partition("mig_")[2]
        if None in numbers or not profile:
            code = "slurm_no_instance" if profile else "slurm_no_profile"
            raise ProblemError(Problem(code, gpu.label, {"host": host, "instance": gpu_instance}))
        kind = _word(host, f"{type_name(str(gpu.name)).partition('-')[0]}_{profile}")
        yield Device(kind, (f"{DEVICE}{gpu.minor_number}", *(f"{CAPABILITY}{number}" for number in numbers)), cores)


def _kind(host: str, gpu: Gpu, wanted: Request) -> str:
    """Return Slurm's name of a GPU."""
    return _word(host, wanted.types.get(str(gpu.name)) or type_name(str(gpu.name)))


def _word(host: str, kind: str) -> str:
    """Return a type that gres.conf and requests take as one word: the name of a GPU is what its node says."""
    if not WORD.fullmatch(kind):
        raise ProblemError(Problem("slurm_unfit_type", kind, {"host": host}))
    return kind


def cores_near(gpu: Gpu, sockets: list[list[Place]]) -> str:
    """Return Slurm's numbers of the cores of the socket that a GPU is at; empty where it is near none in particular.

    All cores of one socket or none: 24.11 and newer reject anything else (src/interfaces/gres.c, _check_core_range_matches_sock).
    """
    near = [place for place, socket in enumerate(sockets) if _is_near(gpu, socket)]
    if len(near) != 1 or len(sockets) == 1:
        return ""
    count = sum(place.cores for place in sockets[0])
    first = near[0] * count
    return f"{first}-{first + count - 1}" if count > 1 else str(first)


def _is_near(gpu: Gpu, socket: list[Place]) -> bool:
    if gpu.numa_node is not None and any(place.node is not None for place in socket):
        return any(place.node == gpu.numa_node for place in socket)
    return bool(members(gpu.cpu_affinity) & set().union(*(members(place.cpus) for place in socket)))


def _is_part(gpu: Gpu, sockets: list[list[Place]]) -> bool:
    """Return True if a GPU's own processors are a part of a socket's."""
    own = members(gpu.cpu_affinity)
    return any(own and own < set().union(*(members(place.cpus) for place in socket)) for socket in sockets)


def links(gpu: Gpu, machine: GpuNode) -> str:
    """Return the number of NVLinks to each GPU of the node, -1 for itself; those to a switch count for none, as in Slurm's plugin."""
    remotes = [link.remote_pci_bus_id for link in gpu.nvlinks if link.active]
    return ",".join("-1" if one is gpu else str(remotes.count(one.pci_bus_id)) for one in machine.gpus)


def _features(host: str, machine: GpuNode, wanted: Request) -> Iterator[str]:
    """Yield the features that jobs may ask for: models of GPUs, what joins them, and the branch of the driver."""
    for gpu in machine.gpus:
        yield _kind(host, gpu, wanted)
    kinds = {link.remote_type for gpu in machine.gpus for link in gpu.nvlinks if link.active}
    if machine.gpus:
        yield "nvswitch" if "nvswitch" in kinds else "nvlink" if kinds else "pcie"
    branch = (machine.driver.loaded_version or "").partition(".")[0]
    if machine.gpus and branch.isdecimal():
        yield f"driver_{branch}"
