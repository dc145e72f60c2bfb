# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The watch on a node's GPUs, with the real pynvml on the simulated library."""

import itertools
import os
import shutil
import subprocess
import sys
import time

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.watching import read
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.node import watch
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.request import NODE_FILES

from tests.lab.nvml import machines, recording


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if not shutil.which("gcc"):
        pytest.skip("no gcc to build the simulated library with")
    place = tmp_path_factory.mktemp("library")
    recording.build_library(place / "libnvidia-ml.so.1")
    return place


def watched(tmp_path, library, interval="0.05", change=lambda machine: machine):
    """Watch an imagined machine until there are three samples; returns what the file says."""
    machine = change(machines.named("a100-nvlink"))
    recording.record(machine, tmp_path)
    variables = {"LD_LIBRARY_PATH": str(library), "SIMULATED_NVML": str(tmp_path / "profile")}
    path = tmp_path / "gpus.jsonl"
    command = [sys.executable, str(NODE_FILES / "watch.py"), str(path), interval]
    with subprocess.Popen(command, env={**os.environ, **variables}, stdin=subprocess.PIPE) as process:
        assert process.wait(30) == 0  # what samples is nobody's child: an engine may wait for all it has
        deadline = time.monotonic() + 30
        while not path.exists() or path.read_text(encoding="utf-8").count("\n") < 4:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    time.sleep(0.5)
    text = path.read_text(encoding="utf-8")
    time.sleep(0.5)
    assert path.read_text(encoding="utf-8") == text, "it goes on after its standard input has ended"
    return machine, read("gpu-1", text)


def test_every_gpu_is_asked_again_and_again(tmp_path, library):
    machine, found = watched(tmp_path, library)
    assert list(found.quantities) == list(watch.questions(None))
    assert len(found.gpus) == len(machine.gpus)
    assert len(set(found.gpus)) == len(found.gpus)
    assert len(found.samples) >= 3
    assert [one.time for one in found.samples] == sorted(one.time for one in found.samples)
    column = found.quantities.index("temperature_celsius")
    assert all(0 < values[column] < 120 for sample in found.samples for values in sample.values)


def test_a_gpu_that_is_lost_keeps_no_other_from_being_watched(tmp_path, library):
    machine, found = watched(tmp_path, library, change=lambda machine: machine.change(2, lost=True))
    assert len(found.gpus) == len(machine.gpus) - 1
    assert {len(sample.values) for sample in found.samples} == {len(found.gpus)}


def test_without_nvml_nothing_is_written(tmp_path):
    command = [sys.executable, str(NODE_FILES / "watch.py"), str(tmp_path / "gpus.jsonl"), "1"]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LD_LIBRARY_PATH": ""},
        timeout=60,
    )
    assert (done.returncode, (tmp_path / "gpus.jsonl").exists()) == (0, False)
    assert done.stdout.startswith("The GPUs are not watched: ")


def test_a_long_run_is_looked_at_less_often():
    found = list(itertools.islice(watch.intervals(2.0), 3 * watch.SAMPLES))
    assert found == [2.0] * watch.SAMPLES + [4.0] * watch.SAMPLES + [8.0] * watch.SAMPLES
    day = next(number for number, total in enumerate(itertools.accumulate(watch.intervals(2.0))) if total > 86400)
    assert day < 4000
