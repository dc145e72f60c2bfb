# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""For each alert a fault: the samples, when it fires, when it must be quiet, and what it says."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.support.cluster_series import constant, listed, step

NODE = {"node": "gpu-1"}
GPU = {**NODE, "gpu": "3"}
PORT = {"job": "node", **NODE, "device": "mlx5_0", "port": "1"}
FINDING = 'allreduce_health_finding{job="node",node="gpu-1",code="%s",subject="%s",severity="failed",action="%s"}'
VERDICT = 'allreduce_health_verdict{job="node",node="%s",verdict="%s"}'
DCGM = 'DCGM_FI_DEV_%s{job="node",node="gpu-1",gpu="3",UUID="GPU-3"}'
IB = 'node_infiniband_%s{job="node",node="%s",device="mlx5_0",port="1"}'
UP = 'up{job="node",node="gpu-1"}'


@dataclass(frozen=True)
class Case:
    """series: {name: values}; fires and quiet: minutes."""

    series: dict[str, str]
    fires: int
    quiet: tuple[int, ...]
    summary: str
    labels: dict[str, str] = field(default_factory=lambda: NODE)


def verdict(name, fires, summary):
    return Case({VERDICT % ("gpu-1", name): step(0, 1)}, fires, (9, fires - 2, 102), summary)


def finding(code, action, fires, summary, labels):
    """A finding is not told before, and not after: the series ends."""
    values = f"_x10 {constant(1, 90)} _x60"
    return Case({FINDING % (code, "GPU3", action): values}, fires, (9, 106), summary, labels)


def gpu(name, fires, summary, value=1):
    return Case({DCGM % name: step(0, value)}, fires, (9, 102), summary, GPU)


SUBJECT = {**NODE, "subject": "GPU3"}
FILES = '{job="node",node="gpu-1",mountpoint="/"}'
CASES = {
    "GpuHealthFailed": Case({VERDICT % ("gpu-1", "failed"): step(0, 1)}, 10, (9, 101), "gpu-1: GPUs, driver or fabric cannot be trusted"),
    "GpuHealthDegraded": verdict("degraded", 26, "gpu-1: slower than it should be, or waiting for a reset or a reboot"),
    "GpuHealthUnknown": verdict("unknown", 41, "gpu-1: something of its GPUs cannot be judged"),
    "GpuHealthStale": Case(
        {'allreduce_health_last_run_timestamp_seconds{job="node",node="gpu-1"}': f"{constant(0, 60)} 3600+60x60"},
        22, (14, 19, 62), "gpu-1: health was last judged 22m 0s ago",
    ),
    "GpuHealthMissing": Case(
        {UP: constant(1, 120), 'allreduce_health_last_run_timestamp_seconds{node="gpu-1"}': f"{constant(0, 10)} _x50 3600+60x60"},
        46, (9, 40, 62), "gpu-1: nothing judges the health of its GPUs",
    ),
    "ManyNodesFailed": Case(
        {VERDICT % (f"gpu-{number}", "failed"): step(0, int(number < 3)) for number in range(1, 12)},
        10, (9, 101), "2 nodes have failed at once", {},
    ),
    "GpuCountBelowPlan": Case(
        {
            'allreduce_health_gpus_expected{node="gpu-1"}': constant(8, 200),
            'allreduce_health_gpus_answering{node="gpu-1"}': step(8, 7),
        },
        10, (9, 101), "gpu-1: only 7 GPUs answer",
    ),
    "GpuXidFatal": finding("xid", "reboot", 10, "gpu-1: an Xid of GPU3 asks for reboot", {**SUBJECT, "action": "reboot"}),
    "GpuXidMonitor": finding("xid", "monitor", 10, "gpu-1: GPU3 had an Xid that a person should look at", SUBJECT),
    "GpuRecoveryAction": gpu("GPU_RECOVERY_ACTION", 10, "gpu-1: the driver asks for recovery action 2 of GPU 3", 2),
    "GpuEccUncorrectable": gpu(
        "ECC_DBE_VOL_TOTAL", 10, "gpu-1: GPU 3 had 4 uncorrectable memory errors since the driver was loaded", 4
    ),
    "GpuRowRemapPending": gpu("ROW_REMAP_PENDING", 10, "gpu-1: GPU 3 remaps a memory row at its next reset"),
    "GpuRowRemapFailed": gpu("ROW_REMAP_FAILURE", 10, "gpu-1: GPU 3 could not remap a memory row"),
    "GpuNvlinkDown": finding("nvlinks", "reset", 10, "gpu-1: NVLinks of GPU3 are down or slow", SUBJECT),
    "GpuFabricUnhealthy": finding("fabric", "configure", 10, "gpu-1: the NVLink fabric is not as it should be", SUBJECT),
    "GpuThrottling": finding("throttling", "monitor", 21, "gpu-1: GPU3 is slowed down by heat or by its power supply", SUBJECT),
    "GpuTemperatureLimit": Case(
        {DCGM % "GPU_TEMP": step(70, 89), DCGM % "SLOWDOWN_TEMP": constant(90, 200)},
        16, (9, 14, 101), "gpu-1: GPU 3 is at 89 °C, its own limit", GPU,
    ),
    "GpuCooling": Case(
        {DCGM % "GPU_TEMP": step(35, 74), DCGM % "GPU_UTIL": constant(0, 200)},
        41, (9, 39, 101), "gpu-1: GPU 3 is at 74 °C and computes nothing", GPU,
    ),
    "GpuPcieLink": finding("pcie_width", "monitor", 26, "gpu-1: the PCIe link of GPU3 is impaired (pcie_width)", {**SUBJECT, "code": "pcie_width"}),
    "GpuMetricsMissing": Case(
        {'allreduce_health_gpus_expected{node="gpu-1"}': constant(1, 200), DCGM % "GPU_TEMP": f"{constant(30, 10)} _x90 {constant(30, 60)}"},
        26, (9, 18, 101), "gpu-1: not all of its 1 GPUs have metrics",
    ),
    "NicPortDown": Case(
        {IB % ("state_id", "gpu-1"): step(4, 1, lasting=3), IB % ("state_id", "gpu-2"): constant(4, 200)},
        10, (9, 30), "gpu-1: port 1 of mlx5_0 is down, or was within 10 minutes", PORT,
    ),
    "NicLinkDowned": Case(
        {IB % ("link_downed_total", "gpu-1"): f"{constant(5, 10)} {constant(6, 100)}"},
        10, (9, 22), "gpu-1: the link of mlx5_0 port 1 went down", PORT,
    ),
    "NicPortErrors": Case(
        {IB % ("local_link_integrity_errors_total", "gpu-1"): f"{constant(0, 10)} {constant(3, 100)}"},
        10, (9, 22), "gpu-1: mlx5_0 port 1 counts errors that lose data", PORT,
    ),
    "NicSymbolErrors": Case(
        {IB % ("symbol_error_total", "gpu-1"): f"{constant(0, 60)} 0+3x120 {constant(360, 90)}"},
        120, (59, 75, 260), "gpu-1: mlx5_0 port 1 counts 180 symbol errors an hour", PORT,
    ),
    "NicLinkRecovery": Case(
        {IB % ("link_error_recovery_total", "gpu-1"): f"{constant(0, 10)} 0+6x60 {constant(360, 60)}"},
        20, (9, 80), "gpu-1: mlx5_0 port 1 recovers 6 times a minute", PORT,
    ),
    "NodeClockOffset": Case(
        {
            'node_time_seconds{job="node",node="gpu-1"}': listed(
                lambda minute: 60 * minute + (2 if 10 <= minute < 60 else 0), 120
            )
        },
        26, (9, 12, 75), "gpu-1: the clock is 2s off", {"job": "node", **NODE},
    ),
    "NodeDiskFull": Case(
        {f"node_filesystem_avail_bytes{FILES}": step(400, 40), f"node_filesystem_size_bytes{FILES}": constant(1000, 300)},
        26, (9, 23, 101), "gpu-1: / has 4% left", {"job": "node", **NODE, "mountpoint": "/"},
    ),
    "NodeDiskFailing": finding("nvme_health", "isolate", 26, "gpu-1: a disk, an array or a file system is unhealthy (nvme_health)",
                               {**SUBJECT, "code": "nvme_health"}),
    "TargetDown": Case({UP: step(1, 0)}, 13, (9, 11, 101), "gpu-1: node does not answer", {**NODE, "job": "node"}),
    "TargetsMissing": Case(
        {UP: f"{constant(1, 10)} _x60 {constant(1, 60)}"}, 26, (9, 16, 71), "No node is monitored", {"job": "node"}
    ),
    "TextfileError": Case(
        {'node_textfile_scrape_error{node="gpu-1"}': step(0, 1)}, 16, (9, 13, 101),
        "gpu-1: the metrics of its health check cannot be read",
    ),
    "PrometheusReloadFailed": Case(
        {'prometheus_config_last_reload_successful{node="gpu-1"}': step(1, 0)}, 16, (9, 13, 101),
        "gpu-1: Prometheus runs with an older configuration than its files",
    ),
    "PrometheusRuleFailures": Case(
        {'prometheus_rule_evaluation_failures_total{node="gpu-1",rule_group="a"}': f"{constant(0, 10)} {constant(9, 60)}"},
        10, (9, 22), "gpu-1: Prometheus could not evaluate 9 rules",
    ),
    "AlertDeliveryFailed": Case(
        {'alertmanager_notifications_failed_total{node="gpu-1",integration="email"}': f"{constant(0, 10)} 0+1x60 {constant(60, 60)}"},
        18, (9, 13, 90), "gpu-1: alerts do not reach their receivers via email", {**NODE, "integration": "email"},
    ),
}  # fmt: skip
