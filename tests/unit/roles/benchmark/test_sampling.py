# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The watch on a GPU, with the real pynvml on the simulated library: this machine's GPUs answer some questions and not others."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from allreduce_benchmark.sampling import Sampler, Watch

from tests.lab.nvml import machines, recording

FILES = Path(__file__).resolve().parents[4] / "roles" / "benchmark" / "files"
CUDA = FILES.parents[2] / "tests" / "unit" / "plugins" / "module_utils" / "simulated_cuda.c"
PROGRAM = """
import json, sys, time
from types import SimpleNamespace
sys.path.insert(0, sys.argv[1])
from allreduce_benchmark.sampling import Sampler, Watch
watch = Watch(SimpleNamespace(is_cuda=True, local_rank=int(sys.argv[2])))
with Sampler(watch, interval=0.01) as sampler:
    time.sleep(0.2)
print(json.dumps([watch.code, watch.driver, sampler.record("gemm", 3)]))
"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    if not shutil.which("gcc"):
        pytest.skip("no gcc to build the simulated libraries with")
    place = tmp_path_factory.mktemp("libraries")
    recording.build_library(place / "libnvidia-ml.so.1")
    command = ["gcc", "-shared", "-fPIC", "-DINIT=0", "-o", str(place / "libcuda.so.1"), str(CUDA)]
    subprocess.run(command, check=True)
    return place


def watched(libraries, tmp_path, ordinal=0):
    """Watch a GPU of an imagined machine, in a process of its own; returns code, driver and record."""
    recording.record(machines.a100_mig(), tmp_path)
    variables = {"LD_LIBRARY_PATH": str(libraries), "SIMULATED_NVML": str(tmp_path / "profile")}
    command = [sys.executable, "-c", PROGRAM, str(FILES), str(ordinal)]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_what_a_gpu_answers_is_sampled_and_the_rest_is_left_out(libraries, tmp_path):
    code, driver, found = watched(libraries, tmp_path)
    assert (code, found["status"], found["during"], found["rank"]) == ("", "measured", "gemm", 3)
    assert driver
    assert found["samples"] > 1
    # With MIG, NVML tells no utilisation.
    assert set(found["figures"]) == {
        "memory_used_mib", "temperature_celsius", "power_watts", "clock_sm_mhz", "clock_memory_mhz",
    }  # fmt: skip
    assert set(found["figures"]["memory_used_mib"]) == {"median", "least", "most", "deviation"}


def test_a_gpu_that_nvml_does_not_know_is_not_watched(libraries, tmp_path):
    code, _driver, found = watched(libraries, tmp_path, ordinal=1)
    assert (code, found["status"], found["code"]) == ("no_nvml", "not_measured", "no_nvml")
    assert "0000:0f:00.0" in found["reason"]


@pytest.mark.parametrize(("is_cuda", "code"), [(False, "no_gpu"), (True, "no_nvml")])
def test_without_a_gpu_or_its_library_there_is_a_reason(is_cuda, code):
    watch = Watch(SimpleNamespace(is_cuda=is_cuda, local_rank=0))
    with Sampler(watch, interval=0.01) as sampler:
        time.sleep(0.03)
    found = sampler.record("memory", 0)
    assert (found["status"], found["code"]) == ("not_measured", code)
    assert found["reason"]


def test_what_is_over_at_once_was_not_sampled():
    watch = SimpleNamespace(is_open=True, read=lambda: {"power_watts": 1.0})
    with Sampler(watch, interval=60) as sampler:
        pass
    assert sampler.record("peers", 0)["code"] == "too_short"


def test_samples_become_figures():
    answers = iter([100.0, 300.0, 200.0])
    watch = SimpleNamespace(is_open=True, read=lambda: {"power_watts": next(answers, 200.0)})
    with Sampler(watch, interval=0.01) as sampler:
        time.sleep(0.2)
    figures = sampler.record("gemm", 0)["figures"]
    assert (figures["power_watts"]["median"], figures["power_watts"]["least"], figures["power_watts"]["most"]) == (
        200,
        100,
        300,
    )
