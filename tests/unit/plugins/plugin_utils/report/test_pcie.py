# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pairs of PCIe as tables."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import pcie_facts as pcie
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.pcie import PciePair
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.verification import NodeVerification
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.pcie import CELLS, MOST_REASONS, groups
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.pcie.answer import pairs
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.pcie.judge import VERDICTS
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines
from ansible_collections.allreduce.gpu.tests.report import cluster
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils import pcie_helper as helper


def built(**nodes):
    return groups({name: parse(NodeVerification, {"pcie_pairs": found}) for name, found in nodes.items()})


def cell(group, row, column):
    return dict(group.rows)[row][group.columns.index(column)].text


def test_every_verdict_has_a_cell():
    assert set(CELLS) == {*VERDICTS.values(), "direct"}
    assert len({one.text for one in CELLS.values()}) == len({one.shade for one in CELLS.values()}) == len(CELLS)


def test_a_pair_stands_in_both_directions():
    [group] = built(n1=cluster.pcie_pairs())
    assert group.columns == ("GPU0", "GPU1", "mlx5_0") and [name for name, _cells in group.rows] == ["GPU0", "GPU1"]
    assert cell(group, "GPU0", "GPU1") == cell(group, "GPU1", "GPU0") == "root"
    assert (cell(group, "GPU0", "mlx5_0"), cell(group, "GPU1", "mlx5_0")) == ("ACS", "direct")
    assert cell(group, "GPU0", "GPU0") == ""
    assert group.text == "3 pairs: 1 through the root complex, 1 redirected by ACS and 1 direct."
    assert [words for _cell, words in group.legend] == ["through the root complex", "redirected by ACS", "direct"]


def test_only_hindered_pairs_have_reasons():
    [group] = built(n1=cluster.pcie_pairs())
    assert group.reasons == ("ACS redirects at bridge 0000:12:00.0 (ReqRedir, CmpltRedir): 1 pair",)


def test_two_gpus_without_an_adapter():
    [group] = built(n1=cluster.pcie_pairs()[:1])
    assert group.columns == ("GPU0", "GPU1") and cell(group, "GPU0", "GPU1") == "root"


def test_of_many_reasons_the_most_frequent_are_told():
    many = [PciePair("GPU0", f"n{one}", "redirected", (f"r{min(one, 9)}",)) for one in range(12)]
    [group] = groups({"n1": NodeVerification(pcie_pairs=tuple(many))})
    assert len(group.reasons) == MOST_REASONS + 1
    assert (group.reasons[0], group.reasons[-1]) == ("r9: 3 pairs", "5 more reasons, in verify.json")


@pytest.mark.parametrize("verdict", ["unknown", "of a newer writer"])
def test_what_nobody_knows_is_no_success(verdict):
    [group] = built(n1=[{"one": "GPU0", "other": "mlx5_0", "verdict": verdict, "reasons": ["why"]}])
    assert cell(group, "GPU0", "mlx5_0") == "unknown" and group.rows[0][1][1].shade == 0
    assert group.text == "1 pair: 1 not known." and group.reasons == ("why: 1 pair",)


def test_nodes_that_are_alike_are_one_group():
    found = built(n2=cluster.pcie_pairs(), n3=cluster.pcie_pairs()[:2], n1=cluster.pcie_pairs(), n4=[])
    assert [group.nodes for group in found] == [("n1", "n2"), ("n3",)]


def test_pairs_that_nvlink_joins_have_no_cell():
    between, *with_adapters = cluster.pcie_pairs()
    [group] = built(n1=with_adapters)
    assert cell(group, "GPU0", "GPU1") == cell(group, "GPU1", "GPU0") == "" and between["other"] == "GPU1"


def test_a_recorded_machine(tmp_path):
    measured = pcie.read_pcie(helper.record(machines.hgx_h100(), tmp_path))
    [group] = built(n1=pairs({"gpu_pcie": measured}))
    assert len(group.rows) == 8 and all(len(cells) == len(group.columns) for _name, cells in group.rows)
    assert group.reasons[0].startswith("ACS redirects at bridge 0000:")
    empty = [(row, group.columns[at]) for row, cells in group.rows for at, one in enumerate(cells) if not one.text]
    assert empty == [(gpu, gpu) for gpu in group.columns[:8]]
