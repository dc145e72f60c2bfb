# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics are text that Prometheus reads, say what DCGM says, and only what is known."""

import re

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health.findings import finding
from ansible_collections.allreduce.gpu.plugins.module_utils.health.metric_table import METRICS
from ansible_collections.allreduce.gpu.plugins.module_utils.health.metrics import VERDICTS, number_text, render

GPU = {
    "index": 3,
    "uuid": "GPU-1",
    "name": 'NVIDIA "X"\\',
    "values": {"temperature": 34, "power_watts": 61.25, "row_remap_failed": None},
}
DOCUMENT = {
    "verdict": "degraded", "findings": [], "timestamp": 1700000000.25, "duration_seconds": 0.125, "gpus_expected": 8,
    "gpus_answering": 7, "clock_offset_seconds": None, "host": "gpu-1", "gpus": [GPU],
}  # fmt: skip
LINE = re.compile(r'[a-zA-Z_]+(\{([a-zA-Z]+="(\\.|[^"\\])*",?)+\})? -?[0-9.e-]+$')


def written(**changes):
    return render({**DOCUMENT, **changes}).splitlines()


def found(**changes):
    """A finding as the document has it."""
    return {
        **finding("xid", "none", "Xid 79", "failed", "it fell off", "reboot", "GPU3", "reboot"),
        "subject": "GPU3",
        **changes,
    }


@pytest.mark.parametrize("line", [one for one in written(findings=[found()]) if not one.startswith("#")])
def test_a_line_is_one_that_prometheus_reads(line):
    assert LINE.match(line)


def test_one_verdict_is_set_and_all_are_told():
    lines = [line for line in written() if line.startswith("allreduce_health_verdict")]
    assert lines == [f'allreduce_health_verdict{{verdict="{one}"}} {int(one == "degraded")}' for one in VERDICTS]


def test_what_a_gpu_tells_has_the_labels_of_dcgm_exporter():
    labels = 'gpu="3",UUID="GPU-1",device="nvidia3",modelName="NVIDIA \\"X\\"\\\\",Hostname="gpu-1"'
    assert f"DCGM_FI_DEV_GPU_TEMP{{{labels}}} 34" in written()
    assert f"DCGM_FI_DEV_POWER_USAGE{{{labels}}} 61.25" in written()


def test_what_is_not_known_is_not_told():
    text = "\n".join(written())
    assert "ROW_REMAP_FAILURE" not in text and "clock_offset" not in text


def test_findings_are_series_that_occur_once():
    lines = [
        line
        for line in written(findings=[found(), found(measured="Xid 48"), found(subject=None)])
        if "_finding{" in line
    ]
    assert lines == [
        'allreduce_health_finding{code="xid",subject="GPU3",severity="failed",action="reboot"} 1',
        'allreduce_health_finding{code="xid",subject="node",severity="failed",action="reboot"} 1',
    ]


def test_times_keep_their_fraction():
    assert "allreduce_health_last_run_timestamp_seconds 1700000000.25" in written()


def test_every_metric_is_said_once_with_its_kind_before_its_samples():
    gpu = {**GPU, "values": {metric.value: 1 for metric in METRICS}}
    lines = written(findings=[found()], clock_offset_seconds=1e-7, gpus=[gpu, {**gpu, "index": 4}])
    heads = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert heads == [metric.name for metric in METRICS]


def test_a_table_of_metrics_is_whole():
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    assert {metric.kind for metric in METRICS} == {"gauge", "counter"}
    assert all(metric.meaning and metric.source for metric in METRICS)


def test_the_first_lines_of_a_metric_say_what_it_is():
    lines = written()
    place = lines.index("# TYPE allreduce_health_gpus_expected gauge")
    assert lines[place - 1] == "# HELP allreduce_health_gpus_expected GPUs that are declared, or that are on the bus."
    assert lines[place + 1] == "allreduce_health_gpus_expected 8"
    assert render(DOCUMENT).endswith("\n") and not render(DOCUMENT).endswith("\n\n")


@pytest.mark.parametrize(("number", "text"), [
    (True, "1"), (False, "0"), (34, "34"), (34.0, "34"), (61.25, "61.25"), (1 / 3, "0.333333333"), (-1e-7, "-1e-07"), (1700000000.25, "1700000000.25"),
])  # fmt: skip
def test_numbers(number, text):
    assert number_text(number) == text


def test_findings_have_labels_where_nothing_is_known():
    (line,) = [one for one in written(findings=[found(subject=None, action_class=None)]) if "_finding{" in one]
    assert line == 'allreduce_health_finding{code="xid",subject="node",severity="failed",action="monitor"} 1'


@pytest.mark.parametrize(("changes", "labels"), [
    ({"uuid": None, "name": None}, 'gpu="3",UUID="",device="nvidia3",modelName="",Hostname="gpu-1"'),
    ({"name": "a\nb"}, 'gpu="3",UUID="GPU-1",device="nvidia3",modelName="a\\nb",Hostname="gpu-1"'),
    ({"index": 0, "name": "A40"}, 'gpu="0",UUID="GPU-1",device="nvidia0",modelName="A40",Hostname="gpu-1"'),
])  # fmt: skip
def test_labels_of_a_gpu(changes, labels):
    assert f"DCGM_FI_DEV_GPU_TEMP{{{labels}}} 34" in written(gpus=[{**GPU, **changes}])


def test_a_gpu_without_a_number_has_no_samples():
    assert not [line for line in written(gpus=[{**GPU, "index": None}]) if "DCGM" in line]
