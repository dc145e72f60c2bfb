# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What roles set up for the network, as tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.document import describe
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.verification import NodeVerification
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report import html
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.declared import tables
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.sources import parsed
from ansible_collections.allreduce.gpu.tests.report import cluster

MEMORY = [
    {"gpus": ["0000:01:00.0"], "path": "dma-buf", "reasons": []},
    {"gpus": ["0000:02:00.0"], "path": "none", "reasons": ["It does not export.", "nvidia_peermem is not loaded."]},
]


def built(**nodes):
    """The tables by their keys."""
    read = {name: parsed(NodeVerification, {"format": 1, **node}, Path("verify.json")) for name, node in nodes.items()}
    return {one.key: one for one in tables(read)}


def said(table):
    return [row.cells for row in table.rows]


def test_a_node_without_these_roles_is_in_no_table():
    lost = describe("n1", {"n1": {"ansible_facts": {}}}, False)
    assert built() == {} and built(n1={}) == {} and built(n1=lost) == {}


def test_each_class_of_an_interface_of_ours_has_its_row():
    table = built(n1={"gpu_qos": cluster.shares("ens1")})["shares"]
    assert table.columns == ("Interface", "Class", "Guarantee", "Ceiling") and not table.judged
    assert said(table) == [("ens1", "training", "20gbit", "25gbit"), ("ens1", "everything else", "5gbit", "10gbit")]


def test_arriving_packets_have_classes_of_their_own():
    fact = cluster.shares("ens1")
    fact["interfaces"]["ifb-ens1"] = fact["interfaces"]["ens1"]
    assert [row[0] for row in said(built(n1={"gpu_qos": fact})["shares"])] == ["ens1", "ens1", "ifb-ens1", "ifb-ens1"]


def test_a_class_that_is_gone_has_no_row():
    fact = cluster.shares("ens1")
    del fact["interfaces"]["ens1"]["shaped"]["classes"][1]
    assert [row[1] for row in said(built(n1={"gpu_qos": fact})["shares"])] == ["everything else"]


def test_equal_rows_of_nodes_are_one():
    other = {"gpu_qos": cluster.shares("ens1", guarantee=10_000_000_000)}
    table = built(n10={"gpu_qos": cluster.shares("ens1")}, n2={"gpu_qos": cluster.shares("ens1")}, n3=other)["shares"]
    assert [(row.nodes, row.cells[2]) for row in table.rows if row.cells[1] == "training"] == [
        (("n2", "n10"), "20gbit"),
        (("n3",), "10gbit"),
    ]


def test_limits_are_those_of_processes_and_no_other_tuning():
    found = built(n1={"comparisons": cluster.network_comparisons()})
    assert list(found) == ["firewall", "limits"]
    assert said(found["limits"])[0] == ("memlock of a login", "unlimited", "unlimited")
    assert len(found["limits"].rows) == 3 and {row.result for row in found["limits"].rows} == {"as planned"}
    assert found["limits"].differences == 0
    assert said(found["firewall"]) == [
        ("rules of nftables", "as declared", "as declared"),
        ("peers", "2 peers", "2 peers"),
    ]


@pytest.mark.parametrize(
    ("status", "result"), [("differs", "differs"), ("missing", "missing"), ("unknown", "not measured")]
)
def test_what_is_not_as_declared_comes_first(status, result):
    comparisons = cluster.network_comparisons()
    wrong = {**comparisons[5], "status": status, "observed": "4096"}
    table = built(n1={"comparisons": comparisons}, n2={"comparisons": [*comparisons[:5], wrong]})["limits"]
    assert table.judged and len(table.rows) == 4 and table.differences == 1
    assert (table.rows[0].nodes, table.rows[0].cells[2], table.rows[0].result) == (("n2",), "4096", result)


def test_an_adapter_with_its_port_its_way_to_the_gpus_and_its_chain():
    [row] = said(built(n1={"rdma_adapters": cluster.rdma_adapters()})["rdma"])
    assert row[:3] == ("mlx5_0", "Ethernet, ACTIVE, 25 Gbit/s, ens1", "dma-buf.")
    assert row[3].startswith("mlx5_0 at ens1: NCCL uses class 106") and row[3].endswith("50 %.")


def test_gpus_are_named_where_they_differ():
    [row] = said(built(n1={"rdma_adapters": [{"name": "mlx5_0", "gpudirect": MEMORY}]})["rdma"])
    assert row[2] == "0000:01:00.0: dma-buf. 0000:02:00.0: none. It does not export. nvidia_peermem is not loaded."


def test_several_ports_and_none():
    ports = [{"port": 1, "link_layer": "InfiniBand", "state": "ACTIVE", "rate_gbps": 400}, {"port": 2, "state": "DOWN"}]
    rows = said(built(n1={"rdma_adapters": [{"name": "mlx5_0", "ports": ports}, {"name": "mlx5_1"}]})["rdma"])
    assert [row[1] for row in rows] == ["InfiniBand, ACTIVE, 400 Gbit/s; DOWN", ""]


def test_the_page_has_them_without_a_measured_network():
    verification = cluster.verification()
    verification["network"] = {}
    verification["nodes"]["gpu-1"]["rdma_adapters"][0]["name"] = cluster.HOSTILE
    page = html.render(cluster.build_report(verification, [], title="x"))
    assert '<a href="#network">Network</a>' in page and 'id="network-shares"' in page and "Interfaces with" not in page
    assert '<td data-label="Guarantee">20gbit</td>' in page and "<script>" not in page


def test_a_table_stands_open_where_something_is_not_as_declared():
    verification = cluster.verification()
    closed = '<details>\n<summary><h3 id="network-limits">'
    assert closed in html.render(cluster.build_report(verification, [], title="x"))
    verification["nodes"]["gpu-1"]["comparisons"][-1]["status"] = "differs"
    page = html.render(cluster.build_report(verification, [], title="x"))
    assert closed not in page and "1 not as planned" in page[page.index('id="network-limits"') :]
