# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of the machine around the GPUs and of its ports; see check_table.py."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from .check_record import check, check_across, check_over_time

MODULE_ACTION = "drain the node, and have the memory module replaced"
DRIVE_ACTION = "drain the node, save what is on the drive, and have it replaced"
WORN_ACTION = "plan the drive's replacement"
PORT_ACTION = "check the cable, the transceiver and the switch port"

HOST_CHECKS = (
    check("memory_size", "health", "host", "the inventory; MemTotal of proc_meminfo(5)",
          ("fewer", "the node has less memory than declared", "degraded", "isolate",
           "look for a memory module that failed its test at boot, in the firmware's log"),
          memory_mib={"type": "int"}),
    check("cpu_count", "health", "host", "the inventory; kernel, Documentation/admin-guide/cputopology.rst",
          ("fewer", "fewer logical processors are online than declared", "degraded", "configure",
           "look for processors that are switched off, in the firmware's settings and the kernel's arguments"),
          cpu_count={"type": "int"}),
    check("memory_errors", "health", "host", "kernel, Documentation/admin-guide/RAS: EDAC; zero is ours",
          ("uncorrected", "the node's memory has had uncorrected errors", "failed", "isolate", MODULE_ACTION),
          ("corrected", "the node's memory has had more corrected errors than tolerated", "degraded", "monitor",
           "plan the memory module's replacement"),
          max_corrected_memory_errors={"type": "int"}),
    check("machine_checks", "health", "host",
          "kernel, arch/x86/kernel/cpu/mce/core.c, drivers/edac/edac_mc.c, drivers/firmware/efi/cper.c",
          ("memory", "the kernel log reports uncorrected errors of the node's memory", "failed", "isolate", MODULE_ACTION),
          ("hardware", "the firmware reports hardware errors that are fatal or recoverable", "degraded", "monitor",
           "read the lines around it in the kernel's log, and call the vendor if it comes back")),
    check("oom_kills", "health", "host", "kernel, mm/oom_kill.c; an hour is ours",
          ("killed", "the kernel killed processes, as the node had run out of memory", "note", "application",
           "look at what the jobs on the node need, and whether services were killed"),
          oom_minutes={"type": "int", "default": 60}),
    check("nccl_settings", "health", "host", "NCCL, docs/userguide, env.rst",
          ("override", "a variable of /etc/nccl.conf is also set elsewhere, which takes precedence", "degraded", "configure",
           "remove it there, or leave it out of /etc/nccl.conf (role allreduce.gpu.nccl)"),
          ("switch", "a transport of NCCL is switched off for all jobs", "degraded", "configure",
           "remove the variable; if it is intended, skip this check")),
    check("kernel_clock", "health", "host", "adjtimex(2); 50 ms is ours",
          ("far", "the kernel still has to correct the clock by more than tolerated", "degraded", "configure",
           "check whether the time service reaches its sources (chronyc sources), and start it if it is down"),
          max_clock_offset_ms={"type": "int", "default": 50}),
    check("disks", "health", "host",
          "kernel, drivers/nvme/host/sysfs.c, Documentation/admin-guide/md.rst, Documentation/ABI/testing/sysfs-fs-ext4",
          ("dead", "the kernel has given up on a disk", "degraded", "isolate", "drain the node, and have the disk replaced"),
          ("array", "a disk array lacks members", "degraded", "monitor", "look at /proc/mdstat, and have the disk replaced"),
          ("file_system", "a file system has recorded errors", "degraded", "monitor",
           "check the kernel log, drain the node and check the file system (e2fsck clears the record)"),
          ("alarm", "an NVMe disk is too hot", "degraded", "monitor", "look at its own report (nvme smart-log), and at its cooling")),
    check("nvme_health", "health", "host",
          "NVM Express Base Specification, SMART / Health Information log (02h); kernel, include/linux/nvme.h",
          ("read_only", "an NVMe drive no longer accepts writes", "degraded", "isolate", DRIVE_ACTION),
          ("unreliable", "media or internal errors have made an NVMe drive unreliable", "degraded", "isolate", DRIVE_ACTION),
          ("spare", "an NVMe drive has less spare left than its own threshold", "degraded", "monitor", WORN_ACTION),
          ("worn", "an NVMe drive has reached its rated number of writes", "degraded", "monitor", WORN_ACTION),
          ("media_errors", "an NVMe drive failed to read its data more often than tolerated", "degraded", "monitor",
           "check whether files are damaged and the number grows; then plan the drive's replacement, or tolerate the number"),
          ("hot", "an NVMe drive is beyond its own temperature limits", "degraded", "monitor", "look at its cooling"),
          ("warns", "an NVMe drive warns about the backup of its memory, or about something that a later specification adds", "degraded", "monitor",
           "look at its own report (nvme smart-log), and ask its vendor"),
          ("forbidden", "an NVMe drive shows its log to root only", "unknown", "configure", "run with become"),
          ("silent", "an NVMe drive does not answer, or answers with an error", "unknown", "monitor",
           "check the kernel log for the drive, and compare with nvme smart-log"),
          nvme_used_percent={"type": "int", "default": 100}, max_nvme_media_errors={"type": "int", "default": 0}),
    check("network_mounts", "health", "host", "statvfs(2); how long it may take is ours",
          ("silent", "a network file system does not answer, or with an error", "degraded", "monitor",
           "check its server and the network to it; what uses it waits until it answers")),
)  # fmt: skip
TIME_CHECKS = (
    check_over_time(
        "throttling_time", "health", "GPU", "NVIDIA/DCGM, DCGM_FI_DEV_THERMAL_VIOLATION; a tenth of 15 minutes is ours",
        ("thermal", "heat has lowered the clocks for more of the last 15 minutes than tolerated", "degraded", "monitor",
         "check fans, airflow and room temperature"),
        max_thermal_percent={"type": "int", "default": 10}),
    check_over_time(
        "ata_health", "health", "host", "smartctl(8), EXIT STATUS; smartd.conf(5), -C 197 -U 198: zero sectors",
        ("failing", "the self-test of an ATA drive says that it is failing", "degraded", "isolate", DRIVE_ACTION),
        ("attribute", "an attribute of an ATA drive has reached its threshold", "degraded", "monitor", WORN_ACTION),
        ("sectors", "more sectors of an ATA drive cannot be read than tolerated", "degraded", "monitor",
         "check whether files are damaged and the number grows; then plan the drive's replacement, or tolerate the number"),
        ("silent", "an ATA drive does not answer smartctl, or reports no status", "unknown", "monitor",
         "run smartctl -H -A on the node; if the drive has no SMART, skip this check"),
        max_bad_sectors={"type": "int", "default": 0}),
)  # fmt: skip
PORT_CHECKS = (
    check("nic_ports", "health", "port", "the inventory; peers are compared whether or not anything is declared, see other_problems",
          ("fewer", "fewer ports are up, or fast enough, than declared", "degraded", "monitor", PORT_ACTION),
          ("slow", "a port of the training network is slower than declared", "degraded", "monitor", PORT_ACTION),
          nic_ports={"type": "int"}, nic_rate_gbps={"type": "int"}),
    check("nic_errors", "health", "kernel log",
          "NVIDIA/NVSentinel, nic-health-monitor.md; kernel, drivers/net/ethernet/mellanox/mlx5/core: cmd.c, health.c",
          ("fatal", "the driver reports that an adapter's firmware is broken, or does not answer", "failed", "reboot",
           "drain and reboot the node; have the adapter replaced if it comes back")),
    check_over_time(
        "nic_links", "health", "port",
        "leptonai/gpud, infiniband/component.go, store/scan_flaps.go: 10 minutes, three drops in 12 hours",
        ("down", "a port that training used is down", "failed", "isolate", PORT_ACTION),
        ("gone", "an adapter that training used was missing in three runs", "failed", "isolate",
         "check the kernel log for the adapter and its PCIe link; reboot, reseat it if it does not come back; if it was taken away on purpose, "
         "run the program of role allreduce.gpu.health with --clear PORT"),
        ("dropped", "a port that training used was down less than 10 minutes ago", "degraded", "monitor", PORT_ACTION),
        ("flapping", "a port dropped three times in 12 hours, and is not trusted until a person clears it", "failed", "isolate",
         PORT_ACTION + "; then run the program of role allreduce.gpu.health with --clear PORT")),
    check_over_time(
        "nic_counters", "health", "port", "NVIDIA/NVSentinel, nic-health-monitor.md",
        ("fatal", "a counter rose that does not move on a healthy port: buffer overruns, integrity errors, or RNR retries", "failed",
         "isolate", PORT_ACTION),
        ("symbol_errors", "more symbol errors in an hour than a bit error rate of 10^-12 allows", "failed", "isolate", PORT_ACTION),
        ("recoveries", "the link recovers more often than tolerated", "degraded", "monitor", PORT_ACTION),
        ("slow_restarts", "RoCE slows down for congestion more often than tolerated", "degraded", "monitor",
         "look at priority flow control and ECN on the switches (role allreduce.gpu.qos)"),
        max_symbol_errors_per_hour={"type": "int", "default": 120}, max_link_recoveries_per_minute={"type": "int", "default": 5},
        max_roce_slow_restarts_per_second={"type": "int", "default": 10}),
)  # fmt: skip
# Of role verify, which compares the nodes; what is compared in a node too has its record there.
CLUSTER_CHECKS = (
    check_across(
        "peer_driver", "coherence", "cluster", "ours: most nodes with the same GPUs; /proc/driver/nvidia/version",
        ("unlike", "the loaded driver differs from that of most nodes with the same GPUs", "degraded", "configure",
         "install the planned driver there, and reboot where only the loaded one is old")),
    check_across(
        "nic_firmware", "coherence", "cluster", "ours: most adapters of the same board; board_id and fw_ver of sysfs-class-infiniband",
        ("unlike", "the firmware differs from that of most adapters of its board", "degraded", "monitor",
         "install the firmware of the others, or this one everywhere")),
)  # fmt: skip
