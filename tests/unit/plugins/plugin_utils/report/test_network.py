# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.network import Network, Pair, Speed, Way
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report import html
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.network import MOST, build
from ansible_collections.allreduce.gpu.tests.report import cluster


def built(**mtus):
    return build(parse(Network, cluster.network(mtus), "network"))


def matrix(found, key):
    [one] = [one for one in found.matrices if one.key == key]
    return one


def cell(found, key, source, target):
    table = matrix(found, key)
    return table.rows[table.names.index(source)][table.names.index(target)]


def test_equal_links_are_one_row():
    links = built(n1=9000, n2=9000, n10=1500).links
    assert [(one.nodes, one.mtu) for one in links] == [(("n1", "n2"), "9000"), (("n10",), "1500")]
    assert links[0].speed == "25 Gbit/s"


def test_each_way_has_its_cell_and_nobody_one_with_itself():
    found = built(a=1500, b=1500, c=1500)
    assert matrix(found, "paths").names == ("a", "b", "c")
    assert cell(found, "paths", "a", "b").text == "0.213"
    assert cell(found, "bandwidth", "a", "b").text == "23.4"
    assert cell(found, "latency", "c", "b").text == "0.041"
    assert cell(found, "paths", "b", "b").text == ""


def test_a_packet_that_does_not_arrive_is_a_fault_in_words():
    found = built(a=9000, b=1500)
    assert (cell(found, "paths", "a", "b").text, cell(found, "paths", "a", "b").fault) == ("not 9000", True)
    assert not cell(found, "paths", "b", "a").fault
    assert found.sentences[0] == "1 of 2 paths between nodes carry packets as large as the sender's interface sends."


def test_what_differs_from_the_median_is_paler():
    found = built(a=1500, b=1500, c=1500)
    assert cell(found, "bandwidth", "a", "b").shade == 4
    assert cell(found, "bandwidth", "a", "c").shade == 1
    assert matrix(found, "bandwidth").text == "6 of 6 paths have a figure; 2.34 to 23.4 Gbit/s, median 23.4."


@pytest.mark.parametrize(
    ("value", "shade"), [(1.0, 4), (0.95, 4), (0.94, 3), (0.8, 3), (0.79, 2), (0.5, 2), (0.49, 1), (7.0, 4)]
)
def test_shades(value, shade):
    speeds = {("a", "b"): 1.0, ("b", "a"): 1.0, ("a", "c"): 1.0, ("c", "a"): 1.0, ("b", "c"): value}
    pairs = tuple(Pair(a, b, None, Speed(a, b, 5201, one * 1e9)) for (a, b), one in speeds.items())
    assert cell(build(Network(pairs=pairs)), "bandwidth", "b", "c").shade == shade


@pytest.mark.parametrize(
    ("way", "text"),
    [
        (Way(1500, False, False), "no answer"),
        (Way(1500, False, True, 0.1, 1400), "not 1500"),
        (Way(1500, True, True, None, 1500), "yes"),
    ],
)
def test_ways_without_a_round_trip(way, text):
    assert cell(build(Network(pairs=(Pair("a", "b", way),))), "paths", "a", "b").text == text


def test_a_speed_that_was_not_measured_says_why():
    found = build(Network(pairs=(Pair("a", "b", None, Speed("a", "b", 5201, code="no_connection")),)))
    assert (cell(found, "bandwidth", "a", "b").text, cell(found, "bandwidth", "a", "b").fault) == (
        "no connection",
        True,
    )
    assert [one.key for one in found.matrices] == ["bandwidth"]


def test_rails_that_were_measured_are_counted():
    speeds = tuple(
        Speed(
            source,
            target,
            5203,
            bits_per_second=1.97e11 if rail == "mlx5_0" else None,
            code="" if rail == "mlx5_0" else "no_rail",
            rail=rail,
        )
        for source, target in (("a", "b"), ("b", "a"))
        for rail in ("mlx5_0", "mlx5_1")
    )
    assert build(Network(rails=speeds)).sentences == ("RDMA was measured in 2 of 4 directions of 2 rails.",)


def test_nothing_examined_is_nothing_said():
    assert build(Network()) == build(parse(Network, {}, "network"))
    assert 'id="network"' not in html.render(cluster.build_report({"format": 1, "nodes": {}}, [], title="Empty"))


def test_of_many_nodes_those_that_differ_are_shown():
    names = [f"gpu-{number}" for number in range(200)]
    good = Way(1500, True, True, 0.2, 1500)
    pairs = [Pair(names[i], names[(i + 1) % 200], good) for i in range(200)]
    pairs[150] = Pair(names[150], names[151], Way(1500, False, False))
    found = build(Network(pairs=tuple(pairs), full_rounds=199, rounds=16))
    table = matrix(found, "paths")
    assert len(table.names) == MOST and {"gpu-150", "gpu-151"} <= set(table.names)
    assert f"{MOST} of 200 nodes shown" in table.text
    assert "Each node was tried with 16 of 199 other nodes, spread over the cluster." in found.sentences


def test_the_page_has_a_table_that_can_be_read_aloud():
    page = html.render(cluster.build_report(cluster.verification(), [], title="Network"))
    assert '<a href="#network">Network</a>' in page
    assert "Bandwidth from the node of the row to the node of the column, in Gbit/s" in page
    assert '<td class="fault">not 9000</td>' in page
    assert "0.213" in page


def test_names_from_elsewhere_are_escaped():
    verification = cluster.verification()
    verification["network"] = cluster.network({cluster.HOSTILE: 9000, "b": 1500})
    verification["network"]["links"][0]["link"]["interface"] = cluster.HOSTILE
    assert "<script>" not in html.render(cluster.build_report(verification, [], title="x"))
