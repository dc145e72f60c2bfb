# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import math
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.training import TrainingResult
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report import sources, training
from ansible_collections.allreduce.gpu.tests.report import cluster


def runs(results):
    return training.runs([sources.parsed(TrainingResult, one, Path("result.json")) for one in results])


def run(nodes, throughput, minute=0, **changes):
    names = [f"gpu-{number}" for number in range(1, nodes + 1)]
    at = f"2026-11-21T15:{minute:02}:00Z"
    return cluster.run(f"{minute:02}-{nodes}n", names, at, at, throughput) | changes


def test_runs_come_newest_first_and_the_newest_of_a_size_counts():
    found = runs([run(1, 900, 0), run(2, 1700, 1), run(1, 1000, 2)])

    assert [(one.run_id, one.counts) for one in found] == [("02-1n", True), ("01-2n", True), ("00-1n", False)]


@pytest.mark.parametrize(
    ("restarts", "remark"),
    [
        (0, "Slurm's job 7"),
        (1, "Slurm's job 7, which began again once"),
        (2, "Slurm's job 7, which began again 2 times"),
    ],
)
def test_the_job_of_a_run_is_named(restarts, remark):
    assert runs([run(2, 900, job={"id": 7, "restarts": restarts})])[0].remarks == (remark,)


def test_scaling_compares_with_the_smallest_size():
    (series,) = training.scaling(runs([run(1, 450), run(2, 850, 1), run(8, 3400, 2)]))

    assert [(size.nodes, round(size.speedup, 2), round(size.efficiency, 2)) for size in series.sizes] == [
        (1, 1.0, 1.0),
        (2, 1.89, 0.94),
        (8, 7.56, 0.94),
    ]


def test_efficiency_counts_processes_not_nodes():
    one, two = run(1, 100, world_size=1), run(2, 800, 1, world_size=8)
    (series,) = training.scaling(runs([one, two]))

    assert series.sizes[1].efficiency == 1.0


def test_a_failed_run_is_no_bar_and_an_earlier_success_stands():
    found = runs([run(1, 900, 0), run(1, 0, 1, status="failed", metrics=None)])

    assert [size.samples_per_second for size in training.scaling(found)[0].sizes] == [900]
    assert [one.counts for one in found] == [True, False]


@pytest.mark.parametrize("throughput", [1e308, 1e-308, -1.0])
def test_a_throughput_that_nothing_has_is_none(throughput):
    """Its share of another one is no number that JSON has."""
    found = training.scaling(runs([run(1, 900), run(2, throughput, 1), run(4, 1e-20, 2)]))
    assert [size.nodes for series in found for size in series.sizes] == [1, 4]


def test_every_script_has_its_own_series():
    found = training.scaling(runs([run(1, 900), run(1, 10, 1, script="vit.py")]))

    assert [series.script for series in found] == ["train_ddp.py", "vit.py"]


@pytest.mark.parametrize(
    ("first", "last", "remarks"),
    [
        (2.3, 0.4, ()),
        (2.3, 2.4, ("the loss did not fall",)),
        (2.3, math.nan, ("the loss is not a finite number: the training diverged",)),
        (None, None, ()),
        ("2.3", "2.4", ("the loss did not fall",)),
        ("unknown", [], ()),
        pytest.param(
            2.3, 10**400, ("the loss is not a finite number: the training diverged",), id="too large for a float"
        ),
    ],
)
def test_remarks_on_the_loss(first, last, remarks):
    result = run(1, 900)
    result["metrics"].update(loss_first=first, loss_last=last)

    assert runs([result])[0].remarks == remarks


def test_a_failure_keeps_the_last_lines_short_and_clean():
    failed = cluster.failed_run()
    failed["failure"]["tail"] = [f"line {number}" for number in range(100)] + ["\x1b[31mred\x1b[0m\n", "y" * 5000]
    failure = runs([failed])[0].failure

    assert (failure.node, failure.rank, failure.exit_code) == ("gpu-2", 1, 3)
    assert failure.words == "rank 1 ended with exit code 3"
    assert len(failure.tail) == training.TAIL_LINES
    assert failure.tail[-2] == "red"
    assert len(failure.tail[-1]) == training.TAIL_WIDTH + 1


@pytest.mark.parametrize(
    ("started", "finished", "seconds"),
    [
        ("2026-11-21T15:00:00Z", "2026-11-21T15:01:30Z", 90),
        ("2026-11-21T15:00:00+00:00", "2026-11-21T15:01:30", 90),
        ("yesterday", "2026-11-21T15:01:30Z", None),
        (None, None, None),
    ],
)
def test_duration(started, finished, seconds):
    assert runs([run(1, 900, started=started, finished=finished)])[0].seconds == seconds


def test_a_run_that_never_started_has_no_processes_but_a_reason():
    failed = run(2, 0, status="failed", world_size=None, metrics=None)
    failed["failure"] = {"node": "gpu-2", "rank": None, "exit_code": None, "reason": "gpu-1 never joined", "tail": []}
    found = runs([failed])[0]

    assert found.processes == 0
    assert found.failure.words == "gpu-1 never joined"


def test_a_run_that_stalled_says_where():
    stall = {"code": "absent", "ranks": [{"rank": 2, "node": "gpu-2"}], "operation": "nccl:all_reduce", "sequence": 7,
             "group": "default_pg", "sizes": [[8]], "place": "", "waiting": 3}  # fmt: skip
    expected = "rank 2 on gpu-2 did not begin nccl:all_reduce (collective 7 of default_pg), in which 3 ranks waited"
    assert runs([run(1, 900, stall=stall)])[0].remarks[-1] == expected


def test_a_run_that_lost_a_node_says_so_and_is_no_measurement_of_a_size():
    lost = run(2, 1700, 1, lost=[{"node": "gpu-2", "reason": "it became unreachable"}])
    found = runs([run(1, 900), lost])
    assert found[0].remarks[-1] == "gpu-2 was lost: it became unreachable"
    assert (found[0].status, found[0].samples_per_second) == ("succeeded", None)
    assert [size.nodes for series in training.scaling(found) for size in series.sizes] == [1]


SHARED, APART = {"gpu-1": "a", "gpu-2": "a"}, {"gpu-1": "a", "gpu-2": "b"}


@pytest.mark.parametrize(
    ("device", "sizes", "machines", "caveat"),
    [
        ("cuda", 2, APART, ""),
        ("cuda", 2, {}, ""),
        ("cuda", 2, {"gpu-1": "a"}, ""),
        ("cuda", 2, SHARED, "The nodes share one machine: this efficiency says nothing about a network."),
        (
            "cpu",
            2,
            SHARED,
            "The nodes share the processors of one machine: this efficiency says nothing about GPUs or a network.",
        ),
        ("cpu", 2, APART, "It ran on processors: this efficiency says nothing about GPUs."),
        ("cpu", 1, SHARED, "It ran on processors: this throughput says nothing about GPUs."),
        ("cuda", 1, SHARED, ""),
    ],
)
def test_what_figures_do_not_say_is_said_with_them(device, sizes, machines, caveat):
    metrics = {**run(1, 450)["metrics"], "device": device}
    found = runs([run(size, 450.0, size, metrics=metrics) for size in range(1, sizes + 1)])
    (series,) = training.scaling(found, machines)
    assert series.caveat == caveat


def test_a_long_course_of_losses_is_means_of_equal_spans():
    losses = [float(step) for step in range(1000, 0, -1)]
    (found,) = runs([run(1, 900, metrics={"losses": losses})])
    assert len(found.losses) == training.LOSSES
    assert found.losses[0] == pytest.approx(996.5) and found.losses[-1] == pytest.approx(5)
    assert sum(found.losses) / len(found.losses) == pytest.approx(sum(losses) / len(losses), rel=0.001)
    assert runs([run(1, 900, metrics={"losses": [2.0, 1.0]})])[0].losses == (2.0, 1.0)
    assert runs([run(1, 900)])[0].losses == ()
