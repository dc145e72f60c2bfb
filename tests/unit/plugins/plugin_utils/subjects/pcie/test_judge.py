# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts of pairs on recorded machines: what is in the way, and at which bridge."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine import gpu_node as model
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import pcie_facts as pcie
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.pcie import PcieNode
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.pcie.judge import VERDICTS, judge, narrow, slowed
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.pcie.text import SENTENCES, sentence
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.pcie.text import VERDICTS as WORDS
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils import pcie_helper as helper

# Below the first switch of hgx_h100: its ports above two GPUs and above the second switch with the first adapter.
FIRST, SECOND, ADAPTER = "0000:12:00.0", "0000:12:01.0", "0000:12:02.0"


def measured(machine, place, **how):
    """Return (PcieNode, gpu_node without NVML, whose labels are addresses)."""
    made = helper.record(machine, place, **how)
    node = parse(PcieNode, pcie.read_pcie(made), "gpu_pcie")
    root = str(place)
    trees = [type(made)(root + "/sys"), type(made)(root + "/proc")]
    return node, model.measure(*trees, root + "/none.so")


def verdicts(machine, place, **how):
    return {(pair.one, pair.other): pair for pair in judge(*measured(machine, place, **how))}


def counted(pairs):
    return dict(Counter(pair.verdict for pair in pairs.values()))


def reasons(pair):
    return [sentence(one) for one in pair.reasons]


def test_acs_as_linux_sets_it_redirects_below_each_switch(tmp_path):
    pairs = verdicts(machines.hgx_h100(), tmp_path)
    # 28 pairs of GPUs and 64 with an adapter; one pair of GPUs and four with an adapter below each of four switches.
    assert counted(pairs) == {"redirected": 4 + 16, "root_complex": 92 - 20}
    pair = pairs["0000:14:00.0", "mlx5_0"]
    assert reasons(pair)[0] == "ACS redirects at bridge 0000:12:00.0 (ReqRedir, CmpltRedir)"
    assert [one.subject for one in pair.reasons] == [FIRST, ADAPTER, "0000:19:00.0"]


@pytest.mark.parametrize(
    ("control", "verdict"), [(0x00, "direct"), (0x11, "direct"), (0x04, "redirected"), (0x20, "redirected")]
)
def test_bits_of_acs(tmp_path, control, verdict):
    assert verdicts(machines.hgx_h100(), tmp_path, acs=control)["0000:14:00.0", "mlx5_0"].verdict == verdict


def test_one_blocking_port_is_in_the_way_of_its_own_pairs_only(tmp_path):
    spaces = {FIRST: helper.space(helper.DOWNSTREAM, helper.LINUX_ACS)}
    pairs = verdicts(machines.hgx_h100(), tmp_path, acs=0x01, spaces=spaces)
    blocked = {ends for ends, pair in pairs.items() if pair.verdict == "redirected"}
    assert blocked == {("0000:14:00.0", other) for other in ("0000:15:00.0", "mlx5_0", "mlx5_1")}
    assert pairs["0000:15:00.0", "mlx5_0"].verdict == "direct"


def test_a_root_port_that_redirects_is_in_nobodys_way_below_it(tmp_path):
    pairs = verdicts(
        machines.hgx_h100(), tmp_path, acs=0, spaces={"0000:10:01.1": helper.space(helper.ROOT_PORT, 0x1D)}
    )
    assert pairs["0000:14:00.0", "mlx5_0"].verdict == "direct"


@pytest.mark.parametrize(
    ("iommu", "verdict"), [("DMA", "translated"), ("DMA-FQ", "translated"), ("identity", "direct"), (None, "direct")]
)
def test_an_iommu(tmp_path, iommu, verdict):
    pairs = verdicts(machines.hgx_h100(), tmp_path, acs=0, iommu=iommu)
    pair = pairs["0000:14:00.0", "mlx5_0"]
    assert pair.verdict == verdict
    assert reasons(pair) == (
        [f"the IOMMU translates for {one} ({iommu})" for one in ("0000:14:00.0", "0000:1a:00.0")]
        if verdict == "translated"
        else []
    )


def test_every_reason_is_told_most_hindering_first(tmp_path):
    pairs = verdicts(machines.hgx_h100(), tmp_path, iommu="DMA")
    codes = [one.code for one in pairs["0000:14:00.0", "0000:15:00.0"].reasons]
    assert codes == ["pcie_translates", "pcie_translates", "pcie_redirects", "pcie_redirects"]


def test_without_a_switch_all_goes_through_the_root_complex(tmp_path):
    pairs = verdicts(machines.a40_pcie(), tmp_path)
    assert counted(pairs) == {"root_complex": 10}
    assert reasons(pairs["0000:17:00.0", "mlx5_0"]) == ["root ports of pci0000:16"]
    assert reasons(pairs["0000:31:00.0", "mlx5_0"]) == ["host bridges pci0000:30 and pci0000:16"]


def test_pairs_with_nvlink_do_not_count(tmp_path):
    node, gpu_node = measured(machines.hgx_h100(), tmp_path)
    names = [gpu["pci_bus_id"] for gpu in gpu_node["gpus"]]
    gpu_node["topology"] = {one: dict.fromkeys(names, "NV18") for one in names}
    pairs = judge(node, gpu_node)
    assert len(pairs) == 64 and all(pair.other.startswith("mlx5_") for pair in pairs)


def test_what_only_root_reads_is_not_known(tmp_path):
    spaces = {FIRST: helper.space(helper.DOWNSTREAM, 0)[:64]}
    pair = verdicts(machines.hgx_h100(), tmp_path, acs=0, spaces=spaces)["0000:14:00.0", "mlx5_0"]
    assert (pair.verdict, reasons(pair)) == ("unknown", ["ACS of bridge 0000:12:00.0 could not be read"])


def test_a_virtual_machine_shows_no_way(tmp_path):
    whole = machines.a40_pcie()
    gpus = tuple(replace(gpu, path=("pci0000:00", f"0000:00:0{number + 5}.0")) for number, gpu in enumerate(whole.gpus))
    pairs = verdicts(replace(whole, gpus=gpus, nics=()), tmp_path, iommu=None)
    assert counted(pairs) == {"unknown": 6}
    assert reasons(pairs["0000:00:05.0", "0000:00:06.0"]) == ["no bridge is visible above 0000:00:05.0"]


def test_a_host_without_gpus_has_no_pairs(tmp_path):
    assert judge(PcieNode(), {}) == () and verdicts(machines.no_gpu(), tmp_path) == {}


def port(kind, width=(16, 16), generation=(4, 4)):
    acs = 0 if kind == helper.DOWNSTREAM else None
    return helper.space(kind, acs, width, generation)


@pytest.mark.parametrize(
    ("spaces", "expected"),
    [
        ({}, []),
        ({"0000:14:00.0": port(helper.ENDPOINT, (8, 16))}, [("0000:14:00.0", 8, 16)]),
        ({"0000:14:00.0": port(helper.ENDPOINT, (8, 16)), FIRST: port(helper.DOWNSTREAM, (8, 8))}, []),
        ({"0000:14:00.0": port(helper.ENDPOINT, (16, 16), (1, 5))}, []),
        ({"0000:11:00.0": port(helper.UPSTREAM, (4, 16))}, [("0000:11:00.0", 4, 16)]),
        ({"0000:14:00.0": port(helper.ENDPOINT, (0, 16))}, []),
    ],
)
def test_links_that_lack_lanes(tmp_path, spaces, expected):
    node, _gpu_node = measured(machines.hgx_h100(), tmp_path, spaces=spaces)
    assert list(narrow(node)) == expected


@pytest.mark.parametrize(
    ("spaces", "expected"),
    [
        ({}, []),
        ({"0000:1a:00.0": port(helper.ENDPOINT, generation=(3, 4))}, [("0000:1a:00.0", 3, 4)]),
        ({"0000:1a:00.0": port(helper.ENDPOINT, generation=(4, 5))}, []),
        ({"0000:14:00.0": port(helper.ENDPOINT, generation=(1, 4))}, []),
    ],
)
def test_adapters_whose_link_is_slower(tmp_path, spaces, expected):
    node, _gpu_node = measured(machines.hgx_h100(), tmp_path, spaces=spaces)
    assert list(slowed(node)) == expected


def test_each_reason_and_verdict_has_its_words():
    assert {*SENTENCES, "pcie_root_complex"} == set(VERDICTS)
    assert set(WORDS) == {*VERDICTS.values(), "direct"}
