# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a GPU does at the moment, read by the real pynvml from the simulated NVML."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health.metric_table import GPU_LABELS, METRICS
from ansible_collections.allreduce.gpu.plugins.module_utils.health.samples import gpu_values, last_xids, read_samples
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.nvml import open_nvml
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines
from ansible_collections.allreduce.gpu.tests.lab.nvml.fault import said, xid


@pytest.fixture
def samples(measure, library):
    def read(machine):
        node = measure(machine)
        with open_nvml(str(library)) as (nvml, dummy):
            return node, read_samples(nvml)

    return read


def test_a_gpu_at_work(samples):
    machine = said(machines.a40_pcie(), 1, ("power_usage", "287500"), ("utilization", "98 40"), ("clocks", "1740 1740 7251"),
                   ("memory_used_mib", "40000 600"))  # fmt: skip
    assert samples(machine)[1]["0000:31:00.0"] == {
        "power_watts": 287.5, "utilisation": 98, "memory_used_mib": 40000, "memory_free_mib": 46068 - 40600,
        "sm_clock_mhz": 1740, "memory_clock_mhz": 7251, "slowdown_temperature": 92,
        "thermal_slowdown_ns": 0,
    }  # fmt: skip


def test_an_older_driver_counts_what_it_reserves(samples, monkeypatch):
    monkeypatch.delattr("pynvml.nvmlMemory_v2")
    machine = said(machines.a40_pcie(), 0, ("memory_used_mib", "40000 600"))
    assert samples(machine)[1]["0000:17:00.0"]["memory_used_mib"] == 40600


def test_a_lost_gpu_has_no_sample(samples):
    assert "0000:98:00.0" not in samples(machines.a40_pcie().change(2, lost=True))[1]


def test_what_a_gpu_does_not_tell_is_none(samples):
    silent = [
        (key, "!3")
        for key in ("power_usage", "utilization", "clocks", "memory_mib", "temperature_threshold.1", "field.75")
    ]
    found = samples(said(machines.rtx_3090(), 0, *silent))[1]["0000:01:00.0"]
    assert set(found.values()) == {None}


def test_values_are_those_of_the_table(samples, counters):
    machine = said(machines.hgx_h100(), 0, ("ecc_errors.0.0", "7"))
    read = counters(machine)
    node, found = samples(machine)
    gpu = node["gpus"][0]
    values = gpu_values(gpu, read[gpu["pci_bus_id"]], found[gpu["pci_bus_id"]], {})
    assert values["corrected_errors"] == 7
    assert set(values) == {metric.value for metric in METRICS if metric.labels == GPU_LABELS}
    # Hopper has a margin in place of the temperature.
    assert [name for name, value in values.items() if value is None] == ["slowdown_temperature"]


def test_the_last_xid_that_counts(samples):
    machine = machines.a40_pcie()
    node = samples(machine)[0]
    xids = last_xids(xid(31, machine, 1) + xid(13, machine, 1) + xid(79, machine, 2))
    assert [gpu_values(gpu, None, None, xids)["last_xid"] for gpu in node["gpus"]] == [0, 13, 79, 0]
    again = last_xids(xid(31, machine, 1) + xid(13, machine, 1) + xid(31, machine, 1))
    assert gpu_values(node["gpus"][1], None, None, again)["last_xid"] == 31
    assert gpu_values(node["gpus"][0], None, None, last_xids(None))["last_xid"] is None
