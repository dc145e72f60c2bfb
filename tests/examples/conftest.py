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

    def start(script, *arguments, **variables):
        processes.append(
            subprocess.Popen(
                [sys.executable, str(EXAMPLES / script), *map(str, arguments)], env={**os.environ, **variables},
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )
        )  # fmt: skip
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
    return lambda *arguments, **variables: end(start(*arguments, **variables))


@pytest.fixture
def folder():
    return EXAMPLES
