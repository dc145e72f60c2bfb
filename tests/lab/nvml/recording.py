# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a host sees a machine: write its sysfs and procfs trees and its NVML profile, and build the library."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

from .adapters import write_nic, write_verbs
from .files import link, write, write_device
from .machine import Gpu, Machine, Model

SOURCES = [
    Path(__file__).with_name(name) for name in ("simulated_nvml.c", "simulated_questions.c")
]  # the first has the second
SPEEDS = {1: "2.5 GT/s PCIe", 3: "8.0 GT/s PCIe", 4: "16.0 GT/s PCIe", 5: "32.0 GT/s PCIe"}
REMOTE_TYPES = {"gpu": 0, "npu": 1, "nvswitch": 2, "unknown": 255}
# MB/s of a link by NVML's number of the version (NVML_NVLINK_VERSION_* of nvml.h), as "nvidia-smi nvlink --status" shows them.
LINK_SPEEDS = {
    2: 25781,  # V100: https://github.com/Azure/azhpc-diagnostics/issues/73
    4: 25000,  # A100: https://github.com/NVIDIA/nccl-tests/issues/228
    5: 14062,  # NVIDIA Ampere GA102 GPU Architecture whitepaper: 14.0625 GB/s in each direction
    6: 26562,  # H100: https://github.com/bottlerocket-os/bottlerocket/pull/4418
    7: 53125,  # GB200: https://github.com/NVIDIA/k8s-test-infra/issues/371
}
LEVELS = {"PIX": 10, "PXB": 20, "PHB": 30, "NODE": 40, "SYS": 50}


def gpu_files(machine: Machine, gpu: Gpu) -> "dict[str, str]":
    generation, width = gpu.model.pcie
    return {
        "vendor": "0x10de", "device": f"0x{gpu.model.device_id:04x}", "class": "0x030200", "numa_node": str(gpu.numa),
        "subsystem_vendor": "0x10de", "subsystem_device": f"0x{gpu.model.subsystem:04x}",
        "local_cpulist": machine.numa[gpu.numa], "current_link_width": str(gpu.width or width), "max_link_width": str(width),
        "current_link_speed": SPEEDS[1], "max_link_speed": SPEEDS[generation],
    }  # fmt: skip


def configuration(gpu: Gpu) -> bytes:
    """Return the configuration space of a GPU as root reads it: a power management capability, and a vendor's own one.

    That of a vGPU begins with the signature VF (NVIDIA/k8s-device-plugin internal/vgpu).
    """
    space = bytearray(256)
    space[0x34] = 0x60
    space[0x60:0x63] = bytes((0x01, 0x78, 0x03))
    space[0x78:0x7D] = bytes((0x09, 0x00, 0x14)) + (b"VF" if gpu.model.vgpu else b"\x01\x00")
    return bytes(space)


def write_sysfs(machine: Machine, sys: Path) -> None:
    for gpu in machine.gpus:
        write_device(sys, gpu.path, gpu_files(machine, gpu))
        (sys / "devices" / Path(*gpu.path) / "config").write_bytes(configuration(gpu))
        if gpu.driver:
            link(sys / "devices" / Path(*gpu.path) / "driver", sys / "bus" / "pci" / "drivers" / gpu.driver)
    for path in machine.nvswitches:
        write_device(sys, path, {"vendor": "0x10de", "device": "0x1af1", "class": "0x068000", "numa_node": "0"})
    for nic in machine.nics:
        write_device(
            sys, nic.path, {"vendor": "0x15b3", "device": "0x101b", "class": "0x020700", "numa_node": str(nic.numa)}
        )
        write_nic(sys, nic)
    for node, cpus in machine.numa.items():
        # As the kernel writes them without a table of the firmware: 10 for the node itself, 20 for all others.
        distances = machine.distances.get(node) or [10 if other == node else 20 for other in sorted(machine.numa)]
        files = {"cpulist": f"{cpus}\n", "distance": " ".join(map(str, distances)) + "\n"}
        write(sys / "devices" / "system" / "node" / f"node{node}", files)
    (sys / "bus" / "pci" / "devices").mkdir(parents=True, exist_ok=True)


def write_procfs(machine: Machine, proc: Path) -> None:
    if machine.driver is None:
        return
    kind = "Open Kernel Module for x86_64" if machine.kernel_modules == "open" else "x86_64 Kernel Module"
    write(
        proc / "driver" / "nvidia",
        {"version": f"NVRM version: NVIDIA UNIX {kind}  {machine.driver}  Release Build\nGCC version:  12.2.0\n"},
    )
    for gpu in machine.gpus:
        text = f"Model: \t\t {gpu.model.name}\nIRQ:   \t\t 33\nGPU UUID: \t {gpu.uuid}\nDevice Minor: \t {gpu.minor}\n"
        write(proc / "driver" / "nvidia" / "gpus" / gpu.address, {"information": text})
    minors = "".join(f"{name} {number}\n" for number, name in enumerate(capabilities(machine), 1))
    write(proc / "driver" / "nvidia-caps", {"mig-minors": minors})


def capabilities(machine: Machine) -> "Iterator[str]":
    """Names in the order of their device numbers, of instances that there are; real ones have numbers for all that there could be.

    NVIDIA Multi-Instance GPU User Guide, Device Nodes and Capabilities. Slurm reads them (gpu_nvml.c, _nvml_get_mig_minor_numbers).
    """
    yield from ("config", "monitor")
    for index, gpu in enumerate(machine.gpus):
        for part in gpu.mig:
            yield f"gpu{index}/gi{part.gpu_instance}/access"
            yield f"gpu{index}/gi{part.gpu_instance}/ci0/access"


def write_host(machine: Machine, root: Path) -> None:
    """Write what is around the GPUs: processors and memory without errors, login sessions, and the first PID namespace."""
    cpus = [int(end) for text in machine.numa.values() for part in text.split(",") for end in part.split("-")]
    write(root / "sys" / "devices" / "system", {
        "cpu/online": f"0-{max(cpus)}\n", "edac/mc/mc0/ue_count": "0\n", "edac/mc/mc0/ce_count": "0\n",
        "edac/mc/mc0/dimm0/dimm_label": "CPU_SrcID#0_MC#0_Chan#0_DIMM#0\n", "edac/mc/mc0/dimm0/dimm_ue_count": "0\n",
        "edac/mc/mc0/dimm0/dimm_ce_count": "0\n",
    })  # fmt: skip
    memory = "MemTotal:       1056270116 kB\nMemFree:        1000000000 kB\n"
    write(root / "proc", {"uptime": f"{machine.uptime}.25 {machine.uptime}.50\n", "meminfo": memory})
    namespace = root / "proc" / "self" / "ns" / "pid"
    namespace.parent.mkdir(parents=True, exist_ok=True)
    namespace.symlink_to("pid:[4026531836]")
    write(root / "root" / "run" / "systemd" / "sessions", {"7": "UID=1000\nUSER=trainer\nACTIVE=1\nSTATE=active\n"})


def write_processors(machine: Machine, sys: Path) -> None:
    """Write the topology of the processors: threads of a core have the same place in each range of their NUMA node."""
    nodes = sorted(machine.numa)
    for place, node in enumerate(nodes):
        package = place * (machine.packages or len(nodes)) // len(nodes)
        ends = [[int(end) for end in part.split("-")] for part in machine.numa[node].split(",")]
        for number in range(ends[0][1] - ends[0][0] + 1):
            threads = [first + number for first, _last in ends]
            siblings = ",".join(map(str, threads))
            for cpu in threads:
                topology = sys / "devices" / "system" / "cpu" / f"cpu{cpu}" / "topology"
                write(topology, {"physical_package_id": f"{package}\n", "thread_siblings_list": f"{siblings}\n"})


def profile(machine: Machine, levels: "dict[tuple[str, str], str]") -> "Iterator[str]":
    """Lines of the NVML profile. levels: {(address, address): code} of "nvidia-smi topo -m"."""
    gpus = [gpu for gpu in machine.gpus if not gpu.hidden]
    yield f"system gpus {len(gpus)}"
    yield f"system nvml_version {machine.cuda // 1000}.{machine.library}"
    yield f"system driver_version {machine.driver}"
    yield f"system cuda_version {machine.cuda}"
    if machine.driver != machine.library:
        yield f"system init !{9 if machine.driver is None else 18}"
    for index, gpu in enumerate(gpus):
        yield from (f"{index} {line}" for line in gpu_profile(gpu, bool(machine.nvswitches)))
        yield from (f"{index} cpu_affinity {machine.numa[gpu.numa]}", f"{index} numa_node {gpu.numa}")
        for other, peer in enumerate(gpus):
            if other != index:
                yield f"{index} p2p.{other} {peer_status(gpu, peer)}"
            if (gpu.address, peer.address) in levels:
                yield f"{index} level.{other} {LEVELS[levels[gpu.address, peer.address]]}"
        for number, part in enumerate(gpu.mig):
            yield f"{index}.mig{number} uuid MIG-{gpu.uuid[4:]}-{number}"
            yield f"{index}.mig{number} name {part.name}"
            yield f"{index}.mig{number} memory_mib {part.memory_mib}"
            yield f"{index}.mig{number} gpu_instance_id {part.gpu_instance}"
            yield f"{index}.mig{number} compute_instance_id 0"
            slices = part.name.partition("MIG ")[2].partition("g.")[0]
            # 14 multiprocessors in each slice of an A100 (NVIDIA Multi-Instance GPU User Guide, A100 MIG Profiles).
            yield f"{index}.mig{number} attributes {14 * int(slices)} {slices} {slices}"


def peer_status(gpu: Gpu, peer: Gpu) -> int:
    """NVML's status of peer-to-peer access: NVLink allows it, else boards for servers do and those for games do not.

    As "nvidia-smi topo -p2p r" shows RTX 5090: https://github.com/noonghunna/club-3090/issues/1130. What is cut up has no peers.
    """
    if gpu.mig or peer.mig:
        return 5  # NVML_P2P_STATUS_NOT_SUPPORTED
    joined = any(remote == peer.address or kind != "gpu" for kind, remote in gpu.links)
    return 0 if joined or (gpu.model.ecc and peer.model.ecc) else 2  # NVML_P2P_STATUS_OK, _GPU_NOT_SUPPORTED


def gpu_profile(gpu: Gpu, switched: bool) -> "Iterator[str]":
    model = gpu.model
    default, low, high = (1000 * watts for watts in model.power)
    generation, width = model.pcie
    yield from (f"{key} {value}" for key, value in gpu.settings)
    if gpu.lost:
        yield "lost 15"
    if gpu.failing:
        yield f"failing {gpu.failing[0]} {gpu.failing[1]}"
    yield from (
        f"name {model.name}", f"uuid {gpu.uuid}", f"minor_number {gpu.minor}", f"pci_bus_id {gpu.address}",
        f"pci_device_id 0x{model.device_id:04x}", f"architecture {model.architecture}",
        f"compute_capability {model.compute_capability.replace('.', ' ')}", f"memory_mib {model.memory_mib}",
        "persistence_mode 0", "compute_mode 0", "pcie_generation 1", f"pcie_max_generation {generation}",
        f"pcie_width {gpu.width or width}", f"pcie_max_width {width}",
        f"power_limit {default}", f"power_default {default}", f"power_bounds {low} {high}",
    )  # fmt: skip
    if model.ecc:
        yield from (f"ecc_errors.{kind}.{counter} 0" for kind in (0, 1) for counter in (0, 1))
        yield from ("ecc 1 1", "remapped_rows 0 0 0 0")
    if model.mig:
        yield from (f"mig {int(bool(gpu.mig))} {int(bool(gpu.mig))}", "mig_max_devices 7")
    # Made up, and the same for all models: only whether they differ counts.
    yield from ("vbios 96.00.00.00.01", "inforom G520.0200.00.05", "max_clocks 1980 1980 2619")
    yield from condition(model)
    if not gpu.mig:  # "On MIG-enabled GPUs, querying device utilization rates is not currently supported" (nvml.h)
        yield "utilization 0 0"
    yield "performance_state 0"
    yield "throttle_reasons 1"  # idle
    if switched:
        yield f"fabric_state {3 if model.architecture >= 9 else 0}"
    if model.nvlinks and model.nvlink_version in LINK_SPEEDS:
        yield f"link_speed {LINK_SPEEDS[model.nvlink_version]}"
    for number in range(model.nvlinks):
        kind, remote = gpu.links[number] if number < len(gpu.links) else ("gpu", None)
        active = int(number < len(gpu.links))
        yield f"link.{number} {active} {model.nvlink_version} {REMOTE_TYPES[kind]} {remote or '-'}"


def condition(model: Model) -> "Iterator[str]":
    """Yield the lines of a GPU on its own parts. Made up, and the same for all models of a generation; which there are follows nvml.h."""
    ampere, ada = model.architecture >= 7, model.architecture >= 8
    yield from ("temperature 34", "processes ", "field.94 0", "field.75 0")
    yield from ("power_usage 61250", "clocks 345 345 2619", "memory_used_mib 1 512")
    # T.Limits on Ada and newer, degrees Celsius before.
    yield from ("temperature_margin 53", "field.194 -2", "field.193 -8") if ada else ("temperature_threshold.1 92",)
    if model.ecc:
        yield from ("inforom_valid 1", "field.6 0")
    if model.ecc and ampere:
        yield from ("sram 0 0 0", "row_histogram 640 0 0 0 0")
    if model.mig:  # what has MIG has memory with a sensor of its own
        yield from ("field.82 40",) if ada else ("field.82 40", "temperature_threshold.2 95")
    if model.architecture >= 9:
        yield "field.230 0"
    if model.nvlinks:
        yield from {9: ("field.161 0", "field.162 0", "field.163 0"), 10: ("field.215 0",)}.get(
            model.architecture, ("field.38 0", "field.45 0", "field.52 0", "field.59 0")
        )


def build_library(place: Path) -> Path:
    """Compile the simulated library; the caller names the profile in SIMULATED_NVML."""
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", str(place), str(SOURCES[0])], check=True)
    return place


def record(
    machine: Machine, root: Path, levels: "dict[tuple[str, str], str] | None" = None, around: bool = True
) -> None:
    """Write root/sys, root/proc and root/profile; ``around``: also what is around the GPUs, part of it in root/root."""
    write_sysfs(machine, root / "sys")
    write_verbs(machine, root / "sys")
    write_procfs(machine, root / "proc")
    if around:
        write_host(machine, root)
        write(root, dict(machine.files))
    (root / "profile").write_text("".join(f"{line}\n" for line in profile(machine, levels or {})))
