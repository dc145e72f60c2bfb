# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields that dcgm-exporter reads: its own default file leaves out most of what alerts are about.

Row-remap pending and the slowdown temperature are not in NVIDIA/dcgm-exporter etc/default-counters.csv, ECC is commented out there. The
list is that of the health check's metrics, so rules and dashboards do not care who tells.
"""

from __future__ import annotations

from typing import Any

from ....module_utils.health import metric_table

PREFIX = "DCGM_FI_DEV_"
# In addition to those of the health check: traffic, which only DCGM measures, and how long the clocks were held back.
MORE = (
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", "millijoules since the driver was loaded"),
    ("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "counter", "NVLink traffic of all links"),
    ("DCGM_FI_DEV_POWER_VIOLATION", "counter", "time held back by power limits"),
)
# What not every release of the exporter knows; it ends at a name that it does not (internal/pkg/counters, "could not find DCGM field").
# The recovery action is known from 4.8.0 on, under another name, and by this one since DCGM 4.6 (NVIDIA/go-dcgm,
# pkg/dcgm/const_fields.go). The health check tells it on every node.
LEFT_OUT = ("DCGM_FI_DEV_GPU_RECOVERY_ACTION",)


def fields() -> list[tuple[str, str, str]]:
    """Return (field, kind, meaning) of each counter."""
    table: Any = metric_table.METRICS
    known = [one for one in table if one.name.startswith(PREFIX) and one.name not in LEFT_OUT]
    ours = [(one.name, one.kind, one.meaning) for one in known]
    return [*ours, *MORE]


def counters() -> str:
    """Return the file: a field, its kind and its help in each line; commas would end the help."""
    lines = [f"{name}, {kind}, {meaning.replace(',', ';')}." for name, kind, meaning in fields()]
    return "# Written by role allreduce.gpu.monitoring; changes made here are lost.\n" + "\n".join(lines) + "\n"
