# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import pytest
from allreduce_benchmark.formulas import bus_factor, gemm_teraflops, gigabytes_per_second
from allreduce_benchmark.records import Subject, first_line, rounded, summary
from hypothesis import given
from hypothesis import strategies as st

FIGURES = st.lists(st.floats(1e-9, 1e15), min_size=1, max_size=20)


@pytest.mark.parametrize(
    ("repetitions", "median", "least", "most", "deviation"),
    [
        ([2.0], 2.0, 2.0, 2.0, 0.0),
        ([1.0, 3.0], 2.0, 1.0, 3.0, 1.0),
        ([5.0, 1.0, 1.1, 0.9, 1.0], 1.0, 0.9, 5.0, 0.1),
    ],
)
def test_a_summary_is_robust(repetitions, median, least, most, deviation):
    found = summary(repetitions)
    assert [found[name] for name in ("median", "least", "most", "deviation")] == [median, least, most, deviation]
    assert found["repetitions"] == repetitions


@given(FIGURES)
def test_the_median_lies_within_the_spread(repetitions):
    found = summary(repetitions)
    assert found["least"] <= found["median"] <= found["most"]
    assert 0 <= found["deviation"] <= found["most"] - found["least"] + rounded(1e-5 * found["most"])
    assert sorted(found["repetitions"]) == sorted(rounded(one) for one in repetitions)


@given(FIGURES, st.randoms())
def test_the_order_of_repetitions_does_not_matter(repetitions, chance):
    shuffled = chance.sample(repetitions, len(repetitions))
    found, again = summary(repetitions), summary(shuffled)
    assert {**found, "repetitions": None} == {**again, "repetitions": None}


def test_a_record_has_figures_or_a_reason_and_never_both():
    subject = Subject("gemm", "TFLOP/s", "cpu", 0, {"precision": "tf32"})
    without, with_figures = subject.not_measured("no_gpu", "This rank has no GPU."), subject.measured([1.0], seconds=2)
    assert (without["status"], without["code"], "median" in without) == ("not_measured", "no_gpu", False)
    assert (with_figures["status"], with_figures["median"], "code" in with_figures) == ("measured", 1.0, False)
    assert with_figures["detail"] == {"seconds": 2}
    assert with_figures["case"] == without["case"] == {"precision": "tf32"}


# The factors of NVIDIA/nccl-tests, doc/PERFORMANCE.md, section Summary.
@pytest.mark.parametrize(
    ("operation", "ranks", "factor"),
    [
        ("all_reduce", 1, 0), ("all_reduce", 2, 1), ("all_reduce", 8, 1.75), ("all_gather", 2, 0.5), ("all_gather", 8, 0.875),
        ("reduce_scatter", 4, 0.75),
    ],
)  # fmt: skip
def test_the_bus_bandwidth_is_that_of_nccl_tests(operation, ranks, factor):
    assert bus_factor(operation, ranks) == factor


def test_an_operation_without_a_formula_has_no_bus_bandwidth():
    with pytest.raises(ValueError, match="broadcast"):
        bus_factor("broadcast", 2)


def test_units():
    assert gemm_teraflops(1000, 0.002) == 1.0
    assert gigabytes_per_second(3_000_000_000, 2) == 1.5


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RuntimeError("CUDA error: x\nCompile with TORCH_USE_CUDA_DSA"), "RuntimeError: CUDA error: x"),
        (OSError(), "OSError: no message"),
    ],
)
def test_an_error_is_one_line(error, words):
    assert first_line(error) == words
