# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read everything gpu_node needs from an open NVML, as plain values."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from .fabric_health import read_fabric
from .sysfs import normalise_address

COMPUTE_MODES = {0: "default", 1: "exclusive_thread", 2: "prohibited", 3: "exclusive_process"}
ARCHITECTURES = {
    2: "Kepler",
    3: "Maxwell",
    4: "Pascal",
    5: "Volta",
    6: "Turing",
    7: "Ampere",
    8: "Ada",
    9: "Hopper",
    10: "Blackwell",
    13: "Rubin",
}
NVLINK_VERSIONS = {1: "1.0", 2: "2.0", 3: "2.2", 4: "3.0", 5: "3.1", 6: "4.0", 7: "5.0", 8: "6.0"}
REMOTE_TYPES = {0: "gpu", 1: "npu", 2: "nvswitch"}
# The codes of "nvidia-smi topo -m" for NVML's topology levels.
LEVELS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
CLOCKS = {0: "graphics", 1: "sm", 2: "memory"}
SPEED_FIELD = "FI_DEV_NVLINK_GET_SPEED"
MIB = 1024 * 1024


def read_system(nvml):
    """Return {``cuda_driver_version``: "12.2", ``driver_version``: "535.261.03"}."""
    cuda = nvml.call("SystemGetCudaDriverVersion")
    return {
        "cuda_driver_version": "%d.%d" % (cuda // 1000, cuda % 1000 // 10) if cuda else None,
        "driver_version": nvml.call("SystemGetDriverVersion"),
    }


def read_gpus(nvml):
    """Return [(handle, gpu)] in NVML's order; a GPU that has no handle or address any more is (None, {index, problem, code})."""
    gpus = []
    for index in range(nvml.call("DeviceGetCount") or 0):
        pci = None
        handle, failed = nvml.attempt("DeviceGetHandleByIndex", index)
        if handle is not None:
            pci, failed = nvml.attempt("DeviceGetPciInfo", handle)
        if pci is None:
            gpus.append((None, {"index": index, "problem": failed["reason"], "code": failed["code"]}))
        else:
            gpus.append((handle, read_gpu(nvml, index, handle, pci)))
    return gpus


def read_gpu(nvml, index, handle, pci):
    """Return one GPU: the keys of ``gpu_node.gpus[]`` that NVML knows, and ``fabric``."""
    nvml.take_errors()
    answers = read_answers(nvml, handle)
    return dict(
        answers,
        index=index,
        pci_bus_id=normalise_address(_text(pci.busId)),
        pci_device_id="0x%04x" % (pci.pciDeviceId >> 16),
        nvml_errors=nvml.take_errors(),
    )


def read_answers(nvml, handle):
    """Return the GPU's answers about itself."""
    capability = nvml.call("DeviceGetCudaComputeCapability", handle)
    memory = nvml.call("DeviceGetMemoryInfo", handle)
    persistence = nvml.call("DeviceGetPersistenceMode", handle)
    return {
        "minor_number": nvml.call("DeviceGetMinorNumber", handle),
        "uuid": nvml.call("DeviceGetUUID", handle),
        "name": nvml.call("DeviceGetName", handle),
        "architecture": ARCHITECTURES.get(nvml.call("DeviceGetArchitecture", handle)),
        "compute_capability": "%d.%d" % tuple(capability) if capability else None,
        "memory_total_mib": memory.total // MIB if memory else None,
        "nvlinks": read_nvlinks(nvml, handle),
        "pcie": {
            "generation": nvml.call("DeviceGetCurrPcieLinkGeneration", handle),
            "max_generation": nvml.call("DeviceGetMaxPcieLinkGeneration", handle),
            "width": nvml.call("DeviceGetCurrPcieLinkWidth", handle),
            "max_width": nvml.call("DeviceGetMaxPcieLinkWidth", handle),
        },
        "persistence_mode": None if persistence is None else bool(persistence),
        "compute_mode": COMPUTE_MODES.get(nvml.call("DeviceGetComputeMode", handle)),
        "ecc": _switch(nvml.call("DeviceGetEccMode", handle)),
        "mig": dict(_switch(nvml.call("DeviceGetMigMode", handle)), instances=read_mig_instances(nvml, handle)),
        "power_limit_watts": read_power_limits(nvml, handle),
        "max_clocks_mhz": read_max_clocks(nvml, handle),
        "vbios_version": nvml.call("DeviceGetVbiosVersion", handle),
        "inforom_version": nvml.call("DeviceGetInforomImageVersion", handle),
        "fabric": read_fabric(nvml, handle),
    }


def _text(value):
    return value.decode("ascii", "replace") if isinstance(value, bytes) else value


def _switch(modes):
    """NVML's [current, pending] pair of 0 and 1."""
    return {"current": bool(modes[0]), "pending": bool(modes[1])} if modes else {"current": None, "pending": None}


def read_power_limits(nvml, handle):
    """Return {current, default, min, max} in watts; None where NVML does not say."""
    bounds = nvml.call("DeviceGetPowerManagementLimitConstraints", handle) or (None, None)
    return {
        "current": _watts(nvml.call("DeviceGetPowerManagementLimit", handle)),
        "default": _watts(nvml.call("DeviceGetPowerManagementDefaultLimit", handle)),
        "min": _watts(bounds[0]),
        "max": _watts(bounds[1]),
    }


def read_max_clocks(nvml, handle):
    """Return {graphics, sm, memory} in MHz, those that NVML tells; None where it tells none."""
    clocks = {name: nvml.call("DeviceGetMaxClockInfo", handle, kind) for kind, name in CLOCKS.items()}
    return {name: clock for name, clock in clocks.items() if clock is not None} or None


def _watts(milliwatts):
    if milliwatts is None:
        return None
    return milliwatts // 1000 if milliwatts % 1000 == 0 else milliwatts / 1000.0


def read_nvlinks(nvml, handle):
    """Return the GPU's links, inactive ones too; [] for a GPU without NVLink."""
    links = []
    for link in range(nvml.constant("NVLINK_MAX_LINKS") or 18):
        active = nvml.call("DeviceGetNvLinkState", handle, link)
        if active is not None:
            remote = nvml.call("DeviceGetNvLinkRemotePciInfo", handle, link) if active else None
            links.append(
                {
                    "link": link,
                    "active": bool(active),
                    "version": NVLINK_VERSIONS.get(nvml.call("DeviceGetNvLinkVersion", handle, link)),
                    "remote_type": REMOTE_TYPES.get(nvml.call("DeviceGetNvLinkRemoteDeviceType", handle, link))
                    if active
                    else None,
                    "remote_pci_bus_id": normalise_address(_text(remote.busId)) if remote else None,
                }
            )
    speeds = read_speeds(nvml, handle, [link["link"] for link in links if link["active"]])
    return [dict(link, speed_mbytes_per_second=speeds.get(link["link"])) for link in links]


def read_speeds(nvml, handle, links):
    """Return {link: MB/s in one direction} as NVML has them, in one call; older drivers do not know the field."""
    speeds = nvml.fields(handle, [(SPEED_FIELD, link) for link in links])
    return {link: int(speed) for (dummy, link), speed in speeds.items() if speed}


def read_mig_instances(nvml, handle):
    """Return the MIG devices that are set up on the GPU."""
    instances = []
    modes = nvml.call("DeviceGetMigMode", handle)
    for number in range(nvml.call("DeviceGetMaxMigDeviceCount", handle) or 0) if modes and modes[0] else ():
        device = nvml.call("DeviceGetMigDeviceHandleByIndex", handle, number)
        if device is not None:
            memory = nvml.call("DeviceGetMemoryInfo", device)
            instances.append(
                {
                    "index": number,
                    "uuid": nvml.call("DeviceGetUUID", device),
                    "name": nvml.call("DeviceGetName", device),
                    "gpu_instance_id": nvml.call("DeviceGetGpuInstanceId", device),
                    "compute_instance_id": nvml.call("DeviceGetComputeInstanceId", device),
                    "memory_total_mib": memory.total // MIB if memory else None,
                }
            )
    return instances


def read_levels(nvml, gpus):
    """Return {(pci_bus_id, pci_bus_id): PIX|PXB|PHB|NODE|SYS} for every pair of GPUs, both ways round."""
    levels = {}
    for handle, gpu in gpus:
        for other_handle, other in gpus:
            if handle is not None and other_handle is not None and gpu["index"] < other["index"]:
                code = LEVELS.get(nvml.call("DeviceGetTopologyCommonAncestor", handle, other_handle))
                if code:
                    levels[gpu["pci_bus_id"], other["pci_bus_id"]] = code
                    levels[other["pci_bus_id"], gpu["pci_bus_id"]] = code
    return levels


def read_all(nvml):
    """Return {``system``, ``gpus``: [gpu …], ``levels``}: all that NVML knows, without its handles."""
    gpus = read_gpus(nvml)
    return {"system": read_system(nvml), "gpus": [gpu for dummy, gpu in gpus], "levels": read_levels(nvml, gpus)}
