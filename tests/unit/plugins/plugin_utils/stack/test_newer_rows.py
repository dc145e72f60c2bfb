# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A month's new rows in data/stack break no test of a rule: these run on the small tables of tests/fixtures/stack."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long  # a second run of tests that every run has

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[4]
PLANNING = HERE.parent / "planning"
# Of cases.yml, those that leave the choice to the resolver.
OPEN = "not test_case or latest or newest or Turing or Volta or chooses or auto"
# On the live tables with the newer rows.
CHOOSE = """
from tests.support import newer_rows
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve
stack = resolve({"os": "ubuntu 24.04", "gpus": ["A40"]})["stack"]
print(stack["driver"]["version"], stack["environments"][0]["frameworks"]["pytorch"])
"""


def run(*command):
    return subprocess.run(
        [sys.executable, *map(str, command)], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )


FILES = [HERE / f"test_{name}.py" for name in ("cases", "result", "rules", "search", "why")]
FILES += [PLANNING / f"test_{name}.py" for name in ("lock", "lock_check", "plan_text")]


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_tests_of_rules_pass_with_newer_rows(file):
    done = run("-m", "pytest", "-q", "-p", "tests.support.newer_rows", "-p", "no:cacheprovider", "-k", OPEN, file)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_the_newer_rows_are_what_the_resolver_chooses():
    """Otherwise the test above would show nothing."""
    done = run("-c", CHOOSE)
    assert (done.returncode, done.stdout.split()) == (0, ["690.45.01", "2.99.0"]), done.stderr
