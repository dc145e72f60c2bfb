# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked of pip and uv, and what their answers mean."""

import json
from subprocess import CompletedProcess

import pytest

from tools.tables import index

OFFERED = {"3.9": ["2.8.0", "2.6.0"], "3.10": ["2.10.0", "2.8.0", "2.13.0+cpu"], "3.15": []}


@pytest.fixture
def pip(monkeypatch):
    """Answer as pip does, which fails for a Python without a release."""

    def run(*arguments, text=None):
        found = OFFERED[arguments[-1]]
        return CompletedProcess(
            arguments, not found, json.dumps({"versions": found}), "ERROR: no matching distribution"
        )

    monkeypatch.setattr(index, "_run", run)


def test_stable_releases_with_their_oldest_python(pip):
    found = index.releases("torch", ["3.9", "3.10", "3.15"])
    assert list(found.items()) == [("2.6.0", "3.9"), ("2.8.0", "3.9"), ("2.10.0", "3.10")]


def test_an_index_that_is_silent_is_no_index_without_releases(pip):
    with pytest.raises(index.NoAnswer, match="no matching distribution"):
        index.releases("torch", ["3.15"])
