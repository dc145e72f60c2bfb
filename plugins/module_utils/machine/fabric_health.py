# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a GPU's place in the NVLink fabric from NVML: registration, identity, and the health mask of GpuFabricInfoV."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from .nvml_errors import ERRORS

STATES = {0: "not_supported", 1: "not_started", 2: "in_progress", 3: "completed"}
# NVML_GPU_FABRIC_HEALTH_MASK_* of nvml.h (https://docs.nvidia.com/deploy/nvml-api/group__nvmlFabricDefs.html):
# (shift, width, {value that tells of something: code}); 0 is "not supported" in all of them.
MASK = (
    (0, 0x3, {1: "degraded_bandwidth"}),
    (2, 0x3, {1: "route_recovery"}),
    (4, 0x3, {1: "route_unhealthy"}),
    (6, 0x3, {1: "access_timeout_recovery"}),
    (8, 0xF, {2: "wrong_sysguid", 3: "wrong_chassis", 4: "no_partition", 5: "insufficient_nvlinks",
              6: "incompatible_firmware", 7: "invalid_location", 8: "gpu_state_invalid"}),
    (12, 0x3, {2: "partition_unassigned"}),
    (14, 0x3, {2: "manager_disconnected"}),
)  # fmt: skip
SUMMARY = {2: "unhealthy", 3: "limited_capacity"}
# (severity, words)
CODES = {
    "degraded_bandwidth": ("degraded", "its bandwidth is degraded"),
    "route_recovery": ("degraded", "its routes are being recovered"),
    "route_unhealthy": ("failed", "its routes are unhealthy"),
    "access_timeout_recovery": ("degraded", "it recovers from a timeout"),
    "wrong_sysguid": ("failed", "its system GUID is wrong"),
    "wrong_chassis": ("failed", "its chassis serial number is wrong"),
    "no_partition": ("failed", "it has no partition"),
    "insufficient_nvlinks": ("failed", "it has too few NVLinks"),
    "incompatible_firmware": ("failed", "its firmware is incompatible"),
    "invalid_location": ("failed", "its location is invalid"),
    "gpu_state_invalid": ("failed", "its state is invalid"),
    "partition_unassigned": ("degraded", "it is in no partition"),
    "manager_disconnected": ("degraded", "the rack's fabric manager is disconnected"),
    "unhealthy": ("failed", "it is unhealthy"),
    "limited_capacity": ("degraded", "its capacity is limited"),
    "not_registered": ("failed", "its registration failed"),
}
# Newest first. A library that does not know one refuses it; of the oldest there is no health.
QUESTIONS = (
    ("DeviceGetGpuFabricInfoV", "c_nvmlGpuFabricInfo_v3_t"),
    ("DeviceGetGpuFabricInfoV", "c_nvmlGpuFabricInfo_v2_t"),
    ("DeviceGetGpuFabricInfo", "c_nvmlGpuFabricInfo_t"),
)


def read_fabric(nvml, handle):
    """Return {``state``: how far the GPU's registration with the NVLink fabric is, ``rack``: whether the fabric is
    larger than the node, so that it has a cluster's identity, ``domain``: that and the partition in it, as
    Kubernetes' label nvidia.com/gpu.clique has them, ``health``: codes}; None where NVML does not say.
    """
    for function, name in QUESTIONS:
        structure = getattr(nvml.pynvml, name, None)
        info = structure() if structure else None
        if info is not None and nvml.call(function, handle, nvml.pynvml.byref(info)) is not None:
            return describe_fabric(info)
    return None


def identity_text(identity):
    """Return 16 bytes as they are written; imported here, since only a rack has an identity."""
    import uuid

    return str(uuid.UUID(bytes=identity))


def describe_fabric(info):
    identity = bytes(bytearray(info.clusterUuid))
    domain = "%s.%d" % (identity_text(identity), info.cliqueId) if any(bytearray(identity)) else None
    state = STATES.get(info.state)
    health = read_mask(getattr(info, "healthMask", 0))
    summary = SUMMARY.get(getattr(info, "healthSummary", 0))
    health += [summary] if summary and not health else []
    # The status has a meaning only then.
    health += ["not_registered"] if state == "completed" and info.status in ERRORS else []
    return {"state": state, "rack": domain is not None, "domain": domain, "health": health}


def read_mask(mask):
    """Return the codes of a health mask."""
    found = [codes.get(mask >> shift & width) for shift, width, codes in MASK]
    return [code for code in found if code]
