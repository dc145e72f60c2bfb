# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mpi4py with this machine's MPI, where it has one; tests/scenarios/test_27_packages.py runs it on a host that always does."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys

import pytest

SCRIPT = "mpi_allreduce.py"
# Open MPI starts nothing as root, and no more ranks than cores, unless it is told to.
ALLOWED = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="no mpi4py here")


@pytest.fixture
def mpirun(folder, tmp_path):
    """Run the script on so many ranks; exit status, what it printed, and the metrics."""
    program = shutil.which("mpirun")
    if program is None:
        pytest.skip("no mpirun here: install Open MPI")

    def mpirun(ranks, *arguments):
        path = tmp_path / "metrics.json"
        command = [program, "-np", str(ranks), sys.executable, str(folder / SCRIPT), *map(str, arguments)]
        done = subprocess.run(
            command, env={**os.environ, **ALLOWED, "ALLREDUCE_METRICS": str(path)}, timeout=120,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout, json.loads(path.read_text("utf-8")) if path.exists() else None

    return mpirun


def test_ranks_sum_and_time_it(mpirun):
    status, said, metrics = mpirun(3, "--megabytes", 0.00001, 1, "--repeats", 2)
    assert status == 0, said
    assert said.startswith("3 ranks on 1 node (")
    assert (metrics["world_size"], metrics["nodes"]) == (3, 1)
    assert [one["bytes"] for one in metrics["all_reduce"]] == [8, 1000000]
    for one in metrics["all_reduce"]:
        assert one["bus_gb_per_second"] == pytest.approx(4 / 3 * one["bytes"] / one["seconds"] / 1e9)


def test_one_rank_alone_says_so(mpirun):
    status, said, metrics = mpirun(1, "--megabytes", 0.001)
    assert (status, metrics["all_reduce"][0]["bus_gb_per_second"]) == (0, 0)
    assert "start more with mpirun -np 2" in said


def test_a_size_that_is_none_is_refused(mpirun):
    status, _said, metrics = mpirun(1, "--megabytes", 0)
    assert (status != 0, metrics) == (True, None)


def test_a_wrong_sum_ends_all_ranks(mpirun, folder, tmp_path, monkeypatch):
    """Rank 1 gives another number than it should."""
    program = "import sys; sys.path.insert(0, sys.argv.pop(1)); import numpy, mpi_allreduce\nfrom mpi4py import MPI\n"
    program += "real = numpy.arange\ncalls = []\n"
    program += "def arange(*given, **more):\n    calls.append(1)\n    wrong = MPI.COMM_WORLD.Get_rank() == 1 and len(calls) == 1\n"
    program += "    return real(*given, **more) + wrong\n"
    program += "numpy.arange = arange\nmpi_allreduce.main()\n"
    wrong = tmp_path / "wrong.py"
    wrong.write_text(program, encoding="utf-8")
    monkeypatch.setattr(sys.modules[__name__], "SCRIPT", wrong)
    status, _said, metrics = mpirun(2, folder, "--megabytes", 0.001)
    assert (status, metrics) == (1, None)


def test_without_an_mpi_it_says_what_it_needs(run, tmp_path):
    ended = run(SCRIPT, MPI4PY_LIBMPI=str(tmp_path / "libmpi.so.40"))
    assert ended.status == 1
    assert (
        "this needs mpi4py in the environment (python_env_packages) and Open MPI or MPICH on the node." in ended.output
    )
