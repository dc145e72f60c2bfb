# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Samples of an imagined cluster for promtool, one a minute: what healthy nodes tell for a day, idle and at work."""

import math

MINUTES = 24 * 60
NODES = ("gpu-1", "gpu-2")
GPUS = 4
VERDICTS = ("ok", "unknown", "degraded", "reboot_required", "failed")


def constant(value, minutes=MINUTES):
    """The same value all the time, in promtool's notation."""
    return f"{value}+0x{minutes - 1}"


def step(good, bad, after=10, lasting=90, rest=120):
    """GOOD for some minutes, BAD for some, then GOOD again."""
    return " ".join((constant(good, after), constant(bad, lasting), constant(good, rest)))


def listed(function, minutes=MINUTES):
    """FUNCTION of each minute."""
    return " ".join(f"{function(minute):g}" for minute in range(minutes))


def healthy(busy):
    """[{series, values}] of the whole cluster."""
    found = [*controller()]
    for number, node in enumerate(NODES):
        found += [*node_series(node, number, busy), *health(node), *ports(node, busy)]
        found += [one for gpu in range(GPUS) for one in gpu_series(node, gpu, busy)]
    return [{"series": name, "values": values} for name, values in found]


def controller():
    yield 'up{job="prometheus",node="ctl"}', constant(1)
    yield 'up{job="alertmanager",node="ctl"}', constant(1)
    yield 'prometheus_config_last_reload_successful{job="prometheus",node="ctl"}', constant(1)
    yield 'prometheus_rule_evaluation_failures_total{job="prometheus",node="ctl",rule_group="a"}', constant(0)
    yield 'alertmanager_notifications_failed_total{job="alertmanager",node="ctl",integration="email"}', constant(0)


def node_series(node, number, busy):
    """A clock that is 3 ms late to be read, one scrape in ten 120 ms: the node is at work."""
    late = (lambda minute: 0.12 if minute % 10 == 3 else 0.003) if busy else (lambda minute: 0.003)
    yield f'up{{job="node",node="{node}"}}', constant(1)
    yield f'node_time_seconds{{job="node",node="{node}"}}', " ".join(f"{60 * m + late(m):.3f}" for m in range(MINUTES))
    yield (
        f'node_timex_offset_seconds{{job="node",node="{node}"}}',
        listed(lambda m: 0.0004 * math.sin(m / 30 + number)),
    )
    yield f'node_textfile_scrape_error{{job="node",node="{node}"}}', constant(0)
    place = f'{{job="node",node="{node}",mountpoint="/"}}'
    yield f"node_filesystem_size_bytes{place}", constant(1000)
    yield f"node_filesystem_avail_bytes{place}", listed(lambda m: 400 - (m % 700) / 2 if busy else 400)


def health(node):
    labels = f'job="node",node="{node}"'
    for verdict in VERDICTS:
        yield f'allreduce_health_verdict{{{labels},verdict="{verdict}"}}', constant(int(verdict == "ok"))
    yield f"allreduce_health_last_run_timestamp_seconds{{{labels}}}", listed(lambda m: m // 5 * 300)
    yield f"allreduce_health_gpus_expected{{{labels}}}", constant(GPUS)
    yield f"allreduce_health_gpus_answering{{{labels}}}", constant(GPUS)


def ports(node, busy):
    """Two cabled ports and one that nobody has cabled; a cable's normal rate of corrected symbols."""
    for device, state in (("mlx5_0", 4), ("mlx5_1", 4), ("mlx5_2", 1)):
        labels = f'job="node",node="{node}",device="{device}",port="1"'
        yield f"node_infiniband_state_id{{{labels}}}", constant(state)
        for name in (
            "link_downed_total", "link_error_recovery_total", "excessive_buffer_overrun_errors_total",
            "local_link_integrity_errors_total",
        ):  # fmt: skip
            yield f"node_infiniband_{name}{{{labels}}}", constant(0)
        yield f"node_infiniband_symbol_error_total{{{labels}}}", listed(lambda m: m // 60 if busy else 0)


def gpu_series(node, gpu, busy):
    """At work: 25 minutes of computing, 5 of loading and writing, in which the card cools down slowly and clocks change."""

    def works(minute):
        return busy and minute % 30 < 25

    def temperature(minute):
        if not busy:
            return 31 + gpu % 4
        return 78 + gpu % 4 if works(minute) else 76 - minute % 30 + 25

    labels = f'job="node",node="{node}",gpu="{gpu}",UUID="GPU-{node}-{gpu}",modelName="NVIDIA H100 80GB HBM3"'
    values = {
        "GPU_TEMP": listed(temperature),
        "SLOWDOWN_TEMP": constant(90),
        "GPU_UTIL": listed(lambda m: 99 if works(m) else 0),
        "PCIE_LINK_GEN": listed(lambda m: 5 if works(m) else 1),  # an idle GPU lowers it by itself
        "GPU_RECOVERY_ACTION": constant(0),
        "ECC_DBE_VOL_TOTAL": constant(0),
        "ROW_REMAP_PENDING": constant(0),
        "ROW_REMAP_FAILURE": constant(0),
        "XID_ERRORS": constant(0) if not busy else listed(lambda m: 31 if m > 600 else 0),  # a user's error
    }
    return [(f"DCGM_FI_DEV_{name}{{{labels}}}", one) for name, one in values.items()]
