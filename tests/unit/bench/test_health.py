# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is measured of gpu_health is a run that judged eight healthy GPUs, beside one of a module that does nothing."""

import shutil

import pytest

from tests.bench import health


def test_every_module_runs_from_an_archive_and_its_cpu_is_taken(tmp_path):
    """Which of them costs more is not asked: on a busy machine one run of each says nothing of it."""
    if not shutil.which("gcc"):
        pytest.skip("no gcc to build the simulated NVML with")
    times = health._times(tmp_path, 2)
    assert set(times) == {"gpu_health", "gpu_facts", "empty"}
    assert all(len(taken) == 2 and min(taken) > 0 for taken in times.values())
    assert list((tmp_path / "compiled").rglob("pynvml*.pyc"))


@pytest.mark.parametrize(
    ("judged", "known", "good"),
    [([0.4, 0.3, 0.9], [0.5, 0.5, 0.5], True), ([0.6, 0.5, 0.4], [0.5, 0.5, 0.5], False), ([0.4, 0.4, 0.4], [0.6, 0.5, 0.6], False)],
    ids=["within both", "gpu_health beyond", "gpu_facts beyond"],
)  # fmt: skip
def test_the_medians_decide(monkeypatch, capsys, judged, known, good):
    times = {"gpu_health": judged, "gpu_facts": known, "empty": [0.3, 0.3, 0.2]}
    monkeypatch.setattr(health, "_times", lambda place, runs: times)
    assert health.measure(3) is good
    printed = capsys.readouterr().out
    assert ("beyond the empty module 0.100 (below 0.15)" in printed) is (judged[0] == 0.4)
    assert ("beyond the empty module 0.200 (below 0.25)" in printed) is (known[0] == 0.5)
