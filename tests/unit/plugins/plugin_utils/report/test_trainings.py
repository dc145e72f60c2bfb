# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.benchmark import Benchmark
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report import trainings
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.benchmark import build

from tests.support.benchmark import cluster, document, phases, run, training, whole


def lines(found):
    return trainings.lines(build(parse(Benchmark, found)).training)


def test_nodes_that_trained_alone_in_the_same_way_are_one_row():
    found = [(one.on, one.row.arm, one.row.images_per_second) for one in lines(whole())]
    assert found == [
        ("1 rank of gpu-1", "plain", 160.0),
        ("1 rank of gpu-1", "tuned", 960.0),
        ("2 ranks on each of gpu-1, gpu-2", "plain", 300.0),
        ("2 ranks on each of gpu-1, gpu-2", "tuned", 1800.0),
        ("4 ranks of gpu-1, gpu-2", "tuned", 3200.0),
    ]


def test_the_row_of_a_hundred_nodes_has_their_median_and_range():
    runs = [
        run(
            "node",
            [f"gpu-{at}"],
            document(f"gpu-{at}", [training(100.0 + at, 2, detail=phases(0.3, 0.2 + at / 1000, None))]),
        )
        for at in range(1, 100)
    ]
    (found,) = lines({**cluster({}), "runs": runs})
    assert found.on == "2 ranks on each of gpu-[1-99]"
    assert (found.row.images_per_second, found.row.spread) == (150.0, "101 to 199")
    assert dict(found.row.phases)["compute"] == 250.0
    assert dict(found.row.phases)["communication"] is None


def test_equal_figures_have_no_range():
    assert {one.row.spread for one in lines(whole())} == {""}
