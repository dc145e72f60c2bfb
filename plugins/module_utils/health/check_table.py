# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of a GPU node, one record each: what is judged, which faults there are, how bad each is, and what to do.

A check's code is also its switch (option ``skip_checks``). Judging code names a fault; severity and action stand only here.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..machine.describe import WORDS
from ..machine.fabric_health import CODES
from ..machine.nvml_errors import TROUBLED, UNUSABLE
from .check_record import check, of_class
from .host_checks import CLUSTER_CHECKS, HOST_CHECKS, PORT_CHECKS, TIME_CHECKS
from .xid_table import CLASSES

NVML = "https://docs.nvidia.com/deploy/nvml-api"
MEMORY_ERRORS = "https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt"
FABRIC_ACTION = "check the fabric manager's log; then reset the GPU"
NVLINK_ACTION = "reset the GPU; then check the kernel log for Xid 74"
NVLINK_ERRORS_ACTION = (
    "compare with the other GPUs; reset the GPU as soon as the node is idle; call the vendor if they grow again"
)
SLOT_ACTION = "put the GPU into a slot like those of the others; look at the riser, and at the slot's settings in the firmware's setup"
COOLING_ACTION = "check fans, airflow and room temperature"

# Of a GPU that is unlike its peers: what can be set, and what the card is.
PEER_SETTING = (
    "configure",
    "set it as on the others (role allreduce.gpu.gpu_settings); if it is intended, skip this check",
)
PEER_PART = ("monitor", "ask the vendor for the firmware of the others, or to replace the GPU")


def answer_faults():
    """Return the fields of a fault for each of NVML's errors that tell of a GPU."""
    classes = {"reset_required": "reset", "insufficient_power": "isolate"}
    unusable = [of_class(classes.get(code, "reboot"), code, "NVML says: " + WORDS[code]) for code in UNUSABLE]
    action = "reset the GPU as soon as the node is idle; call the vendor if it comes back"
    return unusable + [(code, "NVML says: " + WORDS[code], "degraded", "monitor", action) for code in TROUBLED]


def fabric_faults():
    """Return the fields of a fault for each thing that a GPU says of its fabric."""
    classes = {"failed": "reset", "degraded": "monitor"}
    return [
        (code, "a GPU says: " + words, severity, classes[severity], FABRIC_ACTION)
        for code, (severity, words) in CODES.items()
    ]


def peer_checks():
    """Return a check for each thing in which the GPUs of a model are alike."""
    things = (
        ("power_limit", "nvmlDeviceGetPowerManagementLimit", "the power limit", PEER_SETTING),
        ("clocks", "nvmlDeviceGetMaxClockInfo", "the highest graphics, SM or memory clock", PEER_PART),
        ("vbios", "nvmlDeviceGetVbiosVersion", "the VBIOS", PEER_PART),
        ("inforom", "nvmlDeviceGetInforomImageVersion", "the InfoROM", PEER_PART),
        ("memory", "nvmlDeviceGetMemoryInfo", "the size of memory, in whole GiB,", PEER_PART),
        ("mig_mode", "nvmlDeviceGetMigMode", "MIG mode", PEER_SETTING),
        ("ecc_mode", "nvmlDeviceGetEccMode", "ECC mode", PEER_SETTING),
        (
            "application_clocks",
            "nvmlDeviceGetApplicationsClock",
            "the graphics or memory clock of applications",
            PEER_SETTING,
        ),
        ("compute_mode", "nvmlDeviceGetComputeMode", "compute mode", PEER_SETTING),
    )
    source = "ours: most GPUs of the same model in the node; NVML's "
    meaning = "%s differs from that of most GPUs of its model"
    return [
        check("peer_" + code, "health", "GPU", source + function, ("unlike", meaning % what, "degraded") + cure)
        for code, function, what, cure in things
    ]


CHECKS = (
    check("module_loaded", "coherence", "driver", "NVIDIA driver README: /proc/driver/nvidia/version; kernel, kernel/module/signing.c",
          ("held", "no driver is loaded, since another one has the GPUs", "failed", "configure",
           "nouveau or nova_core: blacklist it below /etc/modprobe.d, rebuild the initramfs and reboot, as role allreduce.gpu.nvidia_driver does; "
           "another: give the GPUs back"),
          ("refused", "no driver is loaded, since the kernel refuses a module without a signature that it knows", "failed", "configure",
           "Secure Boot: enrol the key that signs the module (mokutil), or install signed modules"),
          ("absent", "no driver is loaded", "failed", "configure", "load the driver; if that fails, reboot, or install it")),
    check("driver_library", "coherence", "driver", NVML + "/group__nvmlDeviceEnumvs.html: NVML_ERROR_LIB_RM_VERSION_MISMATCH",
          ("missing", "the driver's library is missing", "failed", "configure", "install the driver's libraries"),
          ("other_version", "library and kernel module have different versions", "reboot_required", "reboot",
           "reboot")),
    check("nvml", "coherence", "driver", NVML + "/group__nvmlInitializationAndCleanup.html",
          ("no_binding", "pynvml is not installed, so nothing can be asked", "unknown", "configure",
           "run role allreduce.gpu.base, which installs pynvml"),
          ("no_answer", "NVML refuses to start", "failed", "reboot", "reboot; then check the kernel log"),
          ("hangs", "the driver does not answer in time, and the process that asked may hang in the kernel", "unknown", "reboot",
           "look for processes in state D and check the kernel log; only a reboot ends what hangs in the kernel"),
          ("crashed", "the examination of the node ended without an answer", "unknown", "monitor",
           "check the journal of allreduce-health.service, and report it with the output of gpu_facts")),
    check("fabric", "coherence", "NVLink fabric", NVML + "/group__nvmlFabricDefs.html; NVIDIA Fabric Manager User Guide",
          ("not_ready", "the fabric is not set up, and CUDA fails with error 802", "failed", "configure",
           "start the fabric manager, then check its log"),
          ("split", "the node's GPUs are in several domains or partitions", "degraded", "monitor", FABRIC_ACTION),
          ("apart", "a GPU is in another domain or partition than most of the node", "degraded", "monitor", FABRIC_ACTION),
          *fabric_faults()),
    check("gpu_count", "health", "node", "the plan, or the user",
          ("fewer", "there are fewer GPUs than declared", "failed", "isolate",
           "look for lost GPUs in the kernel log, reseat them"),
          ("more", "there are more GPUs than declared", "degraded", "configure", "declare them, or remove them"),
          gpu_count={"type": "int"}),
    check("gpu_answers", "health", "GPU", NVML + "/group__nvmlDeviceEnumvs.html: nvmlReturn_t",
          ("held", "another driver has the GPU", "degraded", "configure", "give it back to the driver, or declare fewer GPUs"),
          of_class("reboot", "silent", "the GPU is on the bus, but NVML does not show or open it"),
          *answer_faults()),
    check("pcie_width", "health", "GPU", NVML + "/group__nvmlDeviceQueries.html: nvmlDeviceGetMaxPcieLinkWidth",
          ("narrow", "the PCIe link has fewer lanes than the GPU and its slot support", "degraded", "monitor",
           "reseat the GPU or its riser"),
          ("slot", "GPU and slot support fewer lanes than those of most GPUs of the model", "degraded", "monitor", SLOT_ACTION)),
    check("pcie_generation", "health", "GPU", NVML + "/group__nvmlDeviceQueries.html: nvmlDeviceGetMaxPcieLinkGeneration",
          ("slow", "the PCIe link of a busy GPU runs at an older generation than GPU and slot support", "degraded", "monitor",
           "look at the slot, its riser, and the firmware's link speed"),
          ("slot", "GPU and slot support an older generation than those of most GPUs of the model", "degraded", "monitor", SLOT_ACTION)),
    check("aer_errors", "health", "GPU", "kernel, Documentation/ABI/testing/sysfs-bus-pci-devices-aer; zero is ours",
          *[(code, "the PCIe link has had more %s errors than tolerated since boot" % code, "degraded", "monitor",
             "check the kernel log for AER; reseat the GPU or its riser") for code in ("fatal", "nonfatal")],
          max_aer_fatal={"type": "int", "default": 0}, max_aer_nonfatal={"type": "int"}),
    check("nvlinks", "health", "GPU", "the GPU's model (sources in module_utils/machine/nvlink_models.py), else its peers",
          ("inactive", "fewer NVLinks are active than the model or its peers have", "degraded", "reset", NVLINK_ACTION),
          ("slow", "an NVLink is slower than the model's or its peers'", "degraded", "reset", NVLINK_ACTION)),
    check("p2p_access", "health", "GPU", NVML + "/group__nvmlDeviceQueries.html: nvmlDeviceGetP2PStatus; awsome-distributed-training, gpu-cluster-healthcheck",
          ("nvlink", "NVLink joins two GPUs, but the driver does not let them reach each other's memory", "degraded", "reset",
           NVLINK_ACTION),
          ("disabled", "a setting of the driver switches peer-to-peer access off", "degraded", "configure",
           "look for NVreg_RegistryDwords in /etc/modprobe.d, and remove what switches it off"),
          ("unlike", "two GPUs do not reach each other's memory, but most at the same distance do", "degraded", "monitor",
           "compare the way between them (nvidia-smi topo -m, PCIe ACS, IOMMU) with the others'"),
          ("unknown", "the driver does not know whether two GPUs that NVLink joins reach each other's memory", "unknown", "monitor",
           "compare with nvidia-smi topo -p2p r, and check the kernel log")),
    check("ecc_errors", "health", "GPU",
          MEMORY_ERRORS + "; zero is ours; corrected: facebookresearch/gcm, check-nvidia-smi, ecc_corrected_volatile_total",
          ("uncorrected", "more uncorrected memory errors since the driver was loaded than tolerated", "failed", "reset",
           "drain and reset the GPU"),
          ("uncounted", "ECC is on, but NVML counts no errors", "unknown", "monitor", "compare with nvidia-smi -q -d ECC"),
          ("corrected", "a flood of corrected memory errors since the driver was loaded", "degraded", "monitor",
           "reset the GPU as soon as the node is idle; plan its replacement if they grow again"),
          max_uncorrected_errors={"type": "int", "default": 0}, max_corrected_errors={"type": "int", "default": 50000000}),
    check("row_remapping", "health", "GPU", MEMORY_ERRORS + "/error-recovery-and-response-flags.html; row-remapping.html: 512 rows",
          ("failed", "a memory row could not be remapped", "failed", "isolate", "replace the GPU"),
          ("pending", "a memory row is remapped at the next reset", "reboot_required", "reset", "reset the GPU"),
          ("all", "as many rows were remapped as a GPU can remap", "degraded", "isolate",
           "drain the node at the next opportunity, and have the GPU replaced"),
          ("many", "more rows were remapped than tolerated", "degraded", "monitor", "plan the GPU's replacement"),
          max_remapped_rows={"type": "int"}),
    check("page_retirement", "health", "GPU", "https://docs.nvidia.com/deploy/dynamic-page-retirement",
          ("pending", "a memory page is retired at the next reset", "reboot_required", "reset", "reset the GPU"),
          ("all", "as many pages were retired as a GPU can retire", "degraded", "isolate",
           "drain the node at the next opportunity, and have the GPU replaced")),
    check("aggregate_errors", "health", "GPU", NVML + "/group__nvmlFieldValueEnums.html: NVML_FI_DEV_ECC_DBE_AGG_TOTAL",
          ("many", "more uncorrected memory errors in the GPU's lifetime than tolerated", "degraded", "monitor",
           "plan the GPU's replacement"),
          max_aggregate_errors={"type": "int"}),
    check("sram_errors", "health", "GPU",
          NVML + "/structnvmlEccSramErrorStatus__v1__t.html: bThresholdExceeded; NVIDIA/DCGM: DCGM_FR_SRAM_THRESHOLD",
          ("threshold", "errors of the GPU's SRAM exceed the threshold of NVIDIA's field diagnostics", "degraded", "isolate",
           "drain the node at the next opportunity, and have the GPU examined by its vendor")),
    check("spare_rows", "health", "GPU", MEMORY_ERRORS + "/row-remapping.html; zero is ours",
          ("exhausted", "more memory banks than tolerated have no spare row left, so the next error there may be permanent",
           "degraded", "monitor", "plan the GPU's replacement"),
          max_exhausted_banks={"type": "int", "default": 0}),
    check("nvlink_errors", "health", "GPU",
          NVML + "/group__nvmlFieldValueEnums.html: NVML_FI_DEV_NVLINK_*; facebookresearch/gcm, check_dcgmi nvlink: zero",
          ("replays", "more NVLink replays since the links' start than tolerated", "degraded", "monitor", NVLINK_ERRORS_ACTION),
          ("recoveries", "more NVLink recoveries since the links' start than tolerated", "degraded", "monitor", NVLINK_ERRORS_ACTION),
          ("crc_errors", "more CRC errors of NVLinks than tolerated", "degraded", "monitor", NVLINK_ERRORS_ACTION),
          max_nvlink_replays={"type": "int", "default": 0}, max_nvlink_recoveries={"type": "int", "default": 0},
          max_nvlink_crc_errors={"type": "int"}),
    check("pcie_replays", "health", "GPU",
          NVML + "/group__nvmlFieldValueEnums.html: NVML_FI_DEV_PCIE_REPLAY_COUNTER; its rate: NVIDIA/DCGM modules/health",
          ("many", "the PCIe link repeats more packets than its bit error rate allows", "degraded", "monitor",
           "reseat the GPU or its riser; check the kernel log for AER"),
          max_pcie_replays={"type": "int"}),
    check("temperature", "health", "GPU",
          NVML + "/group__nvmlDeviceQueries.html: nvmlDeviceGetTemperatureThreshold, nvmlDeviceGetMarginTemperature; "
          "the shutdown temperature for memory without a limit of its own is ours",
          ("hot", "the GPU is at its own temperature limit", "degraded", "monitor", COOLING_ACTION),
          ("memory_hot", "the GPU's memory is at its own temperature limit", "degraded", "monitor", COOLING_ACTION),
          temperature_margin={"type": "int", "default": 2}),
    check("recovery_action", "health", "GPU", NVML + "/group__nvmlFieldValueEnums.html: NVML_FI_DEV_GET_GPU_RECOVERY_ACTION",
          *[of_class(name, name, "the driver asks for a recovery of class %s" % name) for name in ("reset", "reboot")],
          ("monitor", "the driver asks for a recovery that is neither a reset nor a reboot", "degraded", "monitor",
           "look the number up in the driver's nvml.h, and call the vendor")),
    check("inforom", "health", "GPU",
          NVML + "/group__nvmlDeviceQueries.html: nvmlDeviceValidateInforom; NVIDIA/DCGM: DCGM_FR_CORRUPT_INFOROM",
          ("corrupted", "the checksums of the GPU's InfoROM are wrong, so its counters of errors cannot be trusted", "degraded",
           "monitor", "call the vendor: an InfoROM is repaired or the GPU replaced")),
    check("stale_processes", "health", "GPU",
          NVML + "/group__nvmlDeviceQueries.html: nvmlDeviceGetComputeRunningProcesses; sessions: systemd-logind.service(8)",
          ("ended", "a process that has ended still holds the GPU's memory", "degraded", "reset",
           "end its parent; if the memory stays allocated, reset the GPU as soon as the node is idle"),
          ("logged_out", "a process whose login session has ended holds the GPU's memory", "degraded", "application",
           "ask its owner, and end it; what has to keep running after logout belongs in a unit (systemd-run, or a scheduler)")),
    check("xid", "health", "kernel log", "https://docs.nvidia.com/deploy/xid-errors; each number's below",
          ("unreadable", "the kernel log cannot be read", "unknown", "configure", "run with become to read the kernel log"),
          ("wrapped", "the start of the kernel log was overwritten, and no journal has it", "unknown", "configure",
           "let systemd-journald keep the kernel's messages, or give the kernel a larger log (log_buf_len)"),
          *[of_class(name, name, "an event of class %s" % name) for name in CLASSES],
          ("told", "an event of class application, where ignored_xids is set and does not have it", "degraded", "application",
           CLASSES["application"][1]),
          of_class("reset", "gsp", "the firmware of a GPU does not answer, which Xid 119 or 120 tells elsewhere"),
          ("unsupported", "the driver does not support a GPU", "failed", "configure",
           "install a branch of the driver that supports it; GPUs before Turing need the proprietary kernel modules, from Blackwell the open ones"),
          ("bar", "the firmware of the machine gave a GPU no address space", "failed", "configure",
           "switch on Above 4G Decoding in the firmware's setup, or try the kernel's argument pci=realloc"),
          ("configure", "Xid 45 alone, while the fabric is not healthy", "degraded", "configure",
           "restart the fabric manager (nvidia-fabricmanager), then check its log"),
          ignored_xids={"type": "list", "elements": "int"}),
    check("throttling", "health", "GPU", NVML + "/group__nvmlClocksEventReasons.html",
          *[(code, meaning, "degraded", "monitor", "check cooling and power supply") for code, meaning in (
              ("hardware_slowdown", "the hardware halves the clocks or worse: too hot, or too much power drawn"),
              ("software_thermal", "the driver lowers the clocks: GPU or memory is too hot"),
              ("hardware_thermal", "the hardware halves the clocks or worse: too hot"),
              ("power_brake", "the hardware halves the clocks or worse: the power supply asks for it"),
          )]),
    check("persistence_mode", "health", "GPU", "https://docs.nvidia.com/deploy/driver-persistence",
          ("off", "persistence mode is off: the driver lets go of an idle GPU", "degraded", "configure", "start nvidia-persistenced"),
          persistence={"type": "bool", "default": True}),
    check("pending_modes", "health", "GPU", NVML + "/group__nvmlDeviceQueries.html: nvmlDeviceGetEccMode, nvmlDeviceGetMigMode",
          ("pending", "ECC or MIG was switched, which waits for a reset", "reboot_required", "reset", "reset the GPU")),
    check("peer_model", "health", "GPU", "ours: most GPUs that NVLink joins; NVML's nvmlDeviceGetName",
          ("unlike", "the model differs from that of most GPUs that NVLink joins it with", "degraded", "monitor",
           "check whether it is the card that was ordered; if it is intended, skip this check")),
    *peer_checks(),
    check("peer_temperature", "health", "GPU", "ours: the median of the other idle GPUs of the model in the node, and 25 degrees",
          ("warm", "an idle GPU is much warmer than the other idle ones of its model", "degraded", "monitor",
           "look again in a minute, in case it has just worked; then check its fan or heat sink, and the airflow there")),
    *HOST_CHECKS,
    *TIME_CHECKS,
    *PORT_CHECKS,
    *CLUSTER_CHECKS,
    check("other_problems", "health", "node", "module gpu_facts, findings",
          ("acs_redirect", "PCIe ACS redirects peer-to-peer traffic", "degraded", "configure",
           "clear it with role allreduce.gpu.pcie, unless devices are passed to guests"),
          ("rail_down", "a port is down while its peers are up", "degraded", "monitor",
           "check the adapter's cable and the switch port"),
          ("rail_slow", "a port is slower than its peers", "degraded", "monitor",
           "check the adapter's cable, the switch port and the negotiated speed"),
          ("nic_without_rdma", "an adapter is on the bus, and has no RDMA device", "degraded", "configure",
           "load the RDMA module of its driver (mlx5_ib, or the vendor's), and check the kernel log for the adapter; reboot if it does not come"),
          ("other", "gpu_facts reports another problem", "degraded", "monitor", "see what it says")),
)  # fmt: skip
BY_CODE = {one.code: one for one in CHECKS}
# Of the module, which looks once, with those that only a cluster has; and of the program, which looks again and again.
CODES_AT_ONCE = tuple(one.code for one in CHECKS if not one.over_time)
FAULTS = {(one.code, fault.code): fault for one in CHECKS for fault in one.faults}
OPTIONS = {name: option for one in CHECKS for name, option in one.options.items() if not one.over_time}
OPTIONS_OVER_TIME = {name: option for one in CHECKS for name, option in one.options.items() if one.over_time}
