# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What dcgm-exporter is told to read: it ends at the first field that it does not know, and at a line that has not three parts."""

import csv

from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.monitoring.counters import counters, fields

# Of DCGM_FI_DEV_*, what the exporters of DCGM 4 know, 4.0.1 to 4.8.2: NVIDIA/go-dcgm, pkg/dcgm/const.go and const_fields.go at the
# commits that NVIDIA/dcgm-exporter's go.mod names in each release. A name belongs here once it has been looked up in all of them.
KNOWN = (
    "GPU_TEMP", "MEMORY_TEMP", "SLOWDOWN_TEMP", "THERMAL_VIOLATION", "POWER_VIOLATION", "POWER_USAGE", "TOTAL_ENERGY_CONSUMPTION",
    "GPU_UTIL", "FB_USED", "FB_FREE", "SM_CLOCK", "MEM_CLOCK", "ECC_SBE_VOL_TOTAL", "ECC_DBE_VOL_TOTAL", "ROW_REMAP_PENDING",
    "ROW_REMAP_FAILURE", "XID_ERRORS", "PCIE_REPLAY_COUNTER", "PCIE_LINK_GEN", "PCIE_LINK_WIDTH", "NVLINK_BANDWIDTH_TOTAL",
)  # fmt: skip


def test_every_release_of_the_exporter_knows_every_field():
    assert {name for name, _kind, _meaning in fields()} <= {f"DCGM_FI_DEV_{name}" for name in KNOWN}


def test_no_field_is_asked_for_twice():
    names = [name for name, _kind, _meaning in fields()]
    assert len(names) == len(set(names))


def test_each_line_has_a_field_a_kind_and_its_help():
    """As internal/pkg/counters of the exporter reads it: encoding/csv with comments from # on."""
    lines = [line for line in counters().splitlines() if not line.startswith("#")]
    rows = [[part.strip() for part in row] for row in csv.reader(lines, strict=True)]
    assert len(rows) == len(fields())
    assert all(len(row) == 3 and row[1] in ("gauge", "counter") and row[2] for row in rows)
