# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program of role benchmark: its parts without PyTorch are imported, the others run in an interpreter that has it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.torch_python import torch_python

FILES = Path(__file__).resolve().parents[4] / "roles" / "benchmark" / "files"
sys.path.insert(0, str(FILES))


@pytest.fixture(scope="session")
def python():
    return torch_python()


@pytest.fixture(scope="session")
def benchmark(python, tmp_path_factory):
    """Run the program with these arguments on so many ranks; returns the document, and what it printed."""

    def run(*arguments, ranks=1, status=0, **variables):
        output = tmp_path_factory.mktemp("benchmark") / "benchmark.json"
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"] if ranks > 1 else []
        command = [python, *launcher, str(FILES / "benchmark.py"), *arguments, "--output", str(output)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", **variables}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode == 0) == (status == 0), done.stderr[-3000:]
        return (json.loads(output.read_text("utf-8")) if output.exists() else None), done.stderr

    return run
