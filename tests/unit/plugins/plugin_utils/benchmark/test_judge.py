# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.benchmark.judge import MEMBERS, compare, slow_nodes
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.benchmark import Benchmark
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from hypothesis import given
from hypothesis import strategies as st

from tests.support.benchmark import cluster, document, lacking, measured, run, training

EVEN = {"a": [280.0, 281.0], "b": [279.0, 280.5], "c": [280.2, 279.5]}


def judged(found):
    return compare(parse(Benchmark, found))


def slow(found):
    return [(one.name, member.node, member.gpu) for one in judged(found) for member in one.slow]


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (EVEN, []),
        ({**EVEN, "c": [280.2, 200.0]}, [("gemm", "c", 1)]),
        ({**EVEN, "c": [200.0, 201.0]}, [("gemm", "c", 0), ("gemm", "c", 1)]),
        ({**EVEN, "c": [280.2, 270.0]}, []),  # less than 5 % below the median
        ({**EVEN, "c": [280.2, 400.0]}, []),  # faster is not a fault
        ({"a": [100.0, 140.0], "b": [180.0, 220.0], "c": [260.0, 300.0]}, []),  # scattered: nobody differs
        ({"a": [280.0, 280.0, 280.0, 100.0]}, [("gemm", "a", 3)]),  # within one node
    ],
)
def test_a_slow_gpu_is_one_that_differs_from_its_like(values, found):
    assert slow(cluster(values)) == found


@pytest.mark.parametrize("values", [{}, {"a": [280.0]}, {"a": [280.0, 100.0]}, {"a": [280.0, 280.0, 100.0]}])
def test_too_few_are_not_compared(values):
    for one in judged(cluster(values)):
        assert (one.among, one.code) == (None, "too_few")
        assert one.slow == ()
        assert len(one.members) < MEMBERS


def test_processors_are_not_compared():
    found = cluster({"a": [280.0, 280.0, 280.0, 100.0]})
    for one in found["runs"][0]["document"]["measurements"]:
        one["device"] = "cpu"
    assert [(one.code, one.among, one.slow, len(one.members)) for one in judged(found)] == [("no_gpu", None, (), 4)]


def test_gpus_of_another_model_are_not_their_like():
    fast, slower = cluster({"a": [280.0] * 4}), cluster({"b": [100.0] * 4}, model="NVIDIA A40")
    found = judged({**fast, "runs": fast["runs"] + slower["runs"]})
    assert [(one.model, one.slow) for one in found] == [("NVIDIA A100-SXM4-80GB", ()), ("NVIDIA A40", ())]


def nodes_with(values, name="training", **case):
    """Return a benchmark of nodes whose ranks together measured one figure."""
    runs = [
        run("node", [node], document(node, [training(value, 2) if name == "training" else measured(name, value, None, case)]))
        for node, value in values.items()
    ]  # fmt: skip
    return {**cluster({}), "runs": runs}


def test_a_slow_node_is_one_that_differs_from_its_like():
    found = judged(nodes_with({"a": 2000.0, "b": 2010.0, "c": 1990.0, "d": 1500.0}))
    assert [(one.kind, [member.node for member in one.slow]) for one in found] == [("node", ["d"])]
    assert found[0].slow[0].gpu is None
    assert slow_nodes(found) == ("d",)


def test_pairs_of_gpus_are_compared_with_the_same_pair_of_other_nodes():
    def node(name, near, far):
        copies = [
            measured("peer_copy", value, 0, {"from": 0, "to": other, "peer_access": True})
            for other, value in ((1, near), (2, far))
        ]
        return run("node", [name], document(name, copies, gpus=3))

    runs = [node("a", 250.0, 20.0), node("b", 251.0, 20.1), node("c", 249.0, 20.0), node("d", 250.0, 11.0)]
    found = judged({**cluster({}), "runs": runs})
    assert [dict(one.case)["to"] for one in found if one.slow] == [2]
    assert slow_nodes(found) == ("d",)


def test_what_was_not_measured_takes_no_part():
    runs = [
        run("node", [name], document(name, [lacking("gemm", "not_supported", 0), measured("memory_copy", 1500.0, 0)]))
        for name in "abcd"
    ]
    found = judged({**cluster({}), "runs": runs})
    assert [(one.name, len(one.members)) for one in found] == [("memory_copy", 4)]


def test_runs_of_several_nodes_and_of_one_gpu_are_not_compared():
    runs = [
        run("nodes", ["a", "b"], document("a", [training(4000.0, 4)], nodes=2)),
        run("gpu", ["a"], document("a", [training(1000.0, 1)], gpus=1)),
    ]
    assert judged({**cluster({}), "runs": runs}) == ()


FIGURES = st.lists(st.floats(1.0, 1e6), min_size=MEMBERS, max_size=24)


@given(FIGURES, st.randoms())
def test_names_and_their_order_do_not_matter(values, chance):
    shuffled = chance.sample(values, len(values))
    before = judged(cluster({f"n{place}": [value] for place, value in enumerate(values)}))
    after = judged(cluster({f"m{place}": [value] for place, value in enumerate(shuffled)}))
    assert sorted(one.value for one in before[0].slow) == sorted(one.value for one in after[0].slow)


@given(FIGURES, st.floats(0.001, 1000.0))
def test_the_unit_does_not_matter(values, factor):
    one = judged(cluster({"a": values}))[0]
    other = judged(cluster({"a": [value * factor for value in values]}))[0]
    # A figure that lies on the limit may fall to either side.
    assert abs(len(one.slow) - len(other.slow)) <= 1


@given(FIGURES)
def test_less_than_half_are_slow_and_all_of_them_are_below_the_median(values):
    found = judged(cluster({"a": values}))[0]
    assert 2 * len(found.slow) < len(values)
    assert all(member.value < 0.95 * found.among.median * 1.000001 for member in found.slow)
