# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from ansible_collections.allreduce.gpu.plugins.filter._benchmark_document import FilterModule

from tests.support.benchmark import document, measured, result

collected = FilterModule().filters()["_benchmark_document"]


def test_the_filter_returns_the_document_and_its_summary():
    found = collected([result(document("gpu-1", [measured("gemm", 280.0, 0)], gpus=1))], "b1", "2026-11-23T15:20:00Z")
    assert [one["status"] for one in found["document"]["runs"]] == ["succeeded"]
    assert (found["lines"], found["verdict"], found["slow"]) == (["gpu-1: 1 rank on NVIDIA A100-SXM4-80GB"], "", 0)


def test_a_benchmark_without_runs_is_no_failure():
    assert collected([], "b1", "2026-11-23T15:20:00Z")["document"]["runs"] == []
