# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Examples as a person runs them, with real frameworks, on this machine's processors (nox -s examples)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


class Ended:
    """Exit status and output of a script."""

    def __init__(self, process):
        self.output = process.communicate(timeout=300)[0]
        self.status = process.returncode


@pytest.fixture
def start():
    """Start a script; what is left of it ends with the test."""
    processes = []

    def start(script, *arguments, launcher=(), **variables):
        command = [sys.executable, *launcher, str(EXAMPLES / script), *map(str, arguments)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
        processes.append(
            subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        )
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture
def end():
    return Ended


@pytest.fixture
def run(start, end):
    return lambda *arguments, **options: end(start(*arguments, **options))


@pytest.fixture
def folder():
    return EXAMPLES
