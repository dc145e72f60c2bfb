# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.training import TrainingResult
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report import losses, sources, training
from ansible_collections.allreduce.gpu.tests.report import cluster


def pictures(*courses, **changes):
    found = []
    for number, course in enumerate(courses):
        at = f"2026-11-21T15:{number:02}:00Z"
        run = cluster.run(f"r{number}", ["gpu-1"], at, at, 900.0) | {"script": f"train{number}.py"} | changes
        run["metrics"]["losses"] = course
        found.append(sources.parsed(TrainingResult, run, Path("result.json")))
    return losses.pictures(training.runs(found))


def test_a_loss_that_falls_is_a_line_from_the_upper_left_to_the_lower_right():
    (found,) = pictures([3.0, 2.0, 1.0])
    assert (found.title, found.text) == ("train0.py on 1 node", "from 3 to 1")
    assert (found.top, found.bottom, found.band) == ("3", "1", "")
    assert found.line == "0.00,0.0 50.00,50.0 100.00,100.0"


def test_a_loss_that_stays_is_a_line_in_the_picture():
    (found,) = pictures([2.0, 2.0])
    assert found.line == "0.00,100.0 100.00,100.0"


def test_one_loss_is_no_curve_and_older_runs_are_not_drawn():
    assert pictures([2.0], []) == []
    assert len(pictures([2.0, 1.0], [3.0, 1.0], script="train.py")) == 1
    assert len(pictures(*[[2.0, 1.0]] * 10)) == losses.MOST
