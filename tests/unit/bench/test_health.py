# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is measured of gpu_health is a run that judged eight healthy GPUs, beside one of a module that does nothing."""

import shutil

import pytest

from tests.bench import health


def test_both_modules_run_from_an_archive_and_cost_something(tmp_path):
    if not shutil.which("gcc"):
        pytest.skip("no gcc to build the simulated NVML with")
    ((judged,), (empty,)) = health._times(tmp_path, 1)
    assert 0 < empty < judged
    assert list((tmp_path / "compiled").rglob("pynvml*.pyc"))


@pytest.mark.parametrize(("judged", "good"), [([0.4, 0.3, 0.9], True), ([0.6, 0.5, 0.4], False)])
def test_the_medians_decide(monkeypatch, capsys, judged, good):
    monkeypatch.setattr(health, "_times", lambda place, runs: (judged, [0.3, 0.3, 0.2]))
    assert health.measure(3) is good
    assert f"beyond it                          {'0.100' if good else '0.200'}  (below 0.15)" in capsys.readouterr().out
