# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines that "nvidia-smi topo -m" recorded, rebuilt as PCI trees and NVML profiles: the measured matrix is theirs."""

from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.topology import islands, nccl_xml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.topology.recorded import parse_topology
from ansible_collections.allreduce.gpu.tests.lab.nvml.rebuilding import rebuild

RECORDINGS = sorted((Path(__file__).resolve().parents[4] / "fixtures" / "topologies").glob("*.txt"))


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_a_rebuilt_recording_is_measured_as_it_was_recorded(measure, path):
    recorded = parse_topology(path.read_text())["topology"]
    topology = measure(rebuild(path.stem, path.read_text()))["topology"]
    assert set(topology) == set(recorded)
    assert {
        (one, two): (recorded[one][two], topology[one][two])
        for one in recorded
        for two in recorded
        if recorded[one][two] not in (None, topology[one][two])
    } == {}


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_nothing_is_wrong_with_a_rebuilt_recording(measure, path):
    """A mesh or bridges between some GPUs are not faults; a GPU that lost its way to the switches is one."""
    expected = ["GPU2 has 0 active NVLinks, not 18"] if path.stem == "b200-lost-nvlink" else []
    assert measure(rebuild(path.stem, path.read_text()))["problems"] == expected


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_a_rebuilt_recording_has_a_bandwidth_and_a_file_for_nccl(measure, path):
    node = measure(rebuild(path.stem, path.read_text()))
    assert islands.expected_bus_bandwidth(node) > 0
    assert nccl_xml.nccl_topology_xml(node).count("<gpu ") == len(node["gpus"])
