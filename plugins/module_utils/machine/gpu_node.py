# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The model of a machine, ``ansible_facts.gpu_node``: PCI and procfs first, NVML second, the difference reported."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from . import nvml_gpus, pci_names, procfs, sysfs
from .describe import describe
from .nic_order import build_affinity
from .nvml import library_version, open_nvml
from .problems import find_problems, problem
from .rails import rail_problems
from .topology import build_topology, peer_bridges

NO_NVML = {"system": {"cuda_driver_version": None, "driver_version": None}, "gpus": [], "levels": {}}
# What of a GPU is None unless NVML, or the driver's part of procfs, tells it.
TOLD_BY_NVML = (
    "index",
    "minor_number",
    "uuid",
    "name",
    "architecture",
    "compute_capability",
    "memory_total_mib",
    "persistence_mode",
    "compute_mode",
    "max_clocks_mhz",
    "vbios_version",
    "inforom_version",
)


def measure(sys_tree, proc_tree, nvml_library, pci_databases=pci_names.DATABASES, opener=open_nvml):
    """Read the machine through its three doors, and what a PCI ID database calls its GPUs, and build the model."""
    with opener(nvml_library) as opened:
        return read_machine(opened, sys_tree, proc_tree, nvml_library, pci_databases)


def read_machine(opened, sys_tree, proc_tree, nvml_library, pci_databases=pci_names.DATABASES):
    """Do what measure does; ``opened``: what open_nvml yields. Opening costs more than all questions to one GPU."""
    nvml, unavailable = opened
    measured = nvml_gpus.read_all(nvml) if nvml else NO_NVML
    vendors = sysfs.read_vendors(sys_tree)
    devices = sysfs.read_pci_devices(sys_tree, vendors)
    names = pci_names.read_names({device["device_id"] for device in devices.values()}, pci_databases)
    nics = sysfs.read_nics(sys_tree)
    bridges = {part for device in list(devices.values()) + nics for part in device["path"][1:-1]}
    return build(
        without_rdma=sysfs.read_without_rdma(sys_tree, nics, vendors),
        devices={address: dict(device, name=names.get(device["device_id"])) for address, device in devices.items()},
        nics=nics,
        acs_bridges=[address for address in sorted(bridges) if sysfs.read_acs_redirect(sys_tree, address)],
        numa_nodes=sysfs.read_numa_nodes(sys_tree),
        numa_distances=sysfs.read_numa_distances(sys_tree),
        module=procfs.read_driver(proc_tree),
        module_gpus=procfs.read_gpus(proc_tree),
        library=library_version(nvml_library),
        nvml=dict(measured, unavailable=unavailable),
    )


def build(devices, nics, acs_bridges, numa_nodes, numa_distances, module, module_gpus, library, nvml, without_rdma=()):
    """Merge what the doors gave (see sysfs, procfs and nvml_gpus for the shapes)."""
    seen = {gpu["pci_bus_id"]: gpu for gpu in nvml["gpus"] if "problem" not in gpu}
    pci = {address: device for address, device in devices.items() if device["kind"] == "gpu"}
    gpus = [
        merge_gpu(address, pci.get(address), module_gpus.get(address, {}), seen.get(address))
        for address in sorted(set(pci) | set(seen))
    ]
    gpus.sort(key=lambda gpu: (gpu["index"] is None, gpu["index"] or 0, gpu["pci_bus_id"]))
    paths = {address: device["path"] for address, device in devices.items()}
    paths.update((nic["name"], nic["path"]) for nic in nics)
    public_nics = [{key: value for key, value in nic.items() if key != "path"} for nic in nics]
    topology = build_topology(gpus, public_nics, paths, nvml["levels"], len(numa_nodes) > 1)
    distances = between_nodes(gpus + public_nics, numa_distances)
    switches = sorted(address for address, device in devices.items() if device["kind"] == "nvswitch")
    node = {
        "driver": {
            "loaded_version": module["loaded_version"],
            # WSL's library has no version in its file's name; NVML knows what it is.
            "library_version": library or nvml["system"]["driver_version"],
            "cuda_driver_version": nvml["system"]["cuda_driver_version"],
            "kernel_modules": module["kernel_modules"],
            "nvml": describe(nvml["unavailable"]) if nvml["unavailable"] else "ok",
            "nvml_state": nvml["unavailable"]["code"] if nvml["unavailable"] else "ok",
        },
        "gpus": gpus,
        "nvswitches": {"count": len(switches), "pci_bus_ids": switches},
        "fabric": read_fabric(nvml, switches, bool(gpus)),
        "nics": public_nics,
        "topology": topology,
        "numa_distances": distances,
        "affinity": build_affinity(gpus, public_nics, topology, distances),
    }
    lost = [gpu for gpu in nvml["gpus"] if "problem" in gpu]
    between = peer_bridges(gpus, public_nics, topology, paths)
    findings = find_problems(node, lost, [bridge for bridge in acs_bridges if bridge in between])
    findings += rail_problems(gpus, public_nics, topology)
    findings += [problem("nic_without_rdma", one["pci_bus_id"], driver=one["driver"] or "none") for one in without_rdma]
    return dict(node, findings=findings, problems=[describe(finding) for finding in findings])


def between_nodes(devices, distances):
    """Return the distances between the NUMA nodes that devices are at; a rack's node has dozens that are GPU memory."""
    used = sorted({str(device["numa_node"]) for device in devices})
    return {
        node: {other: distances[node][other] for other in used if other in distances[node]}
        for node in used
        if node in distances
    }


def merge_gpu(address, device, module_gpu, seen):
    """Return one entry of ``gpus``; what neither source knows is None."""
    link = device["link"] if device else {}
    gpu = dict.fromkeys(TOLD_BY_NVML)
    gpu.update(
        pci_bus_id=address,
        pci_device_id=sysfs.hexadecimal(device["device_id"]) if device else None,
        pci_subsystem_id=device["subsystem_id"] if device else None,
        pci_name=device["name"] if device else None,
        vgpu=device["vgpu"] if device else None,
        kernel_driver=device["driver"] if device else None,
        numa_node=device["numa_node"] if device else None,
        cpu_affinity=device["cpu_affinity"] if device else None,
        nvlinks=[],
        pcie={key: link.get(key) for key in ("generation", "max_generation", "width", "max_width")},
        ecc={"current": None, "pending": None},
        mig={"current": None, "pending": None, "instances": []},
        power_limit_watts=dict.fromkeys(("current", "default", "min", "max")),
        nvml_errors={},
        fabric=None,
        seen_by=[source for source, found in (("pci", device), ("nvml", seen)) if found],
    )
    gpu.update((key, value) for key, value in module_gpu.items() if value is not None)
    for key, value in (seen or {}).items():
        if key == "pcie":
            gpu["pcie"] = {part: gpu["pcie"][part] if number is None else number for part, number in value.items()}
        elif key in gpu and value is not None:
            gpu[key] = value
    return gpu


def read_fabric(nvml, switches, has_gpus):
    """Return the node's need of a fabric manager (None: cannot be known without NVML), the state of the worst GPU, and
    which part of which rack's fabric its GPUs are in.

    Where the fabric spans a rack, the manager runs on the rack's switches and not on the node.
    """
    fabrics = [gpu["fabric"] for gpu in nvml["gpus"] if gpu.get("fabric")]
    fabrics = [fabric for fabric in fabrics if fabric["state"] not in (None, "not_supported")]
    known = nvml["unavailable"] is None or not has_gpus
    needed = bool(switches) or any(not fabric["rack"] for fabric in fabrics)
    states = [fabric["state"] for fabric in fabrics]
    worst = next((state for state in ("not_started", "in_progress", "completed") if state in states), None)
    domains = {fabric["domain"] for fabric in fabrics}
    return {
        "manager_needed": True if needed else False if known else None,
        "state": worst,
        "domain": domains.pop() if len(domains) == 1 else None,
    }
