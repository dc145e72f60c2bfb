# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two hosts for all scenarios. The files are numbered: they run in the order of a cluster's life."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cluster import KEEP, Cluster  # noqa: E402 (beside this file)
from training_hosts import Launched  # noqa: E402


@pytest.fixture(scope="session")
def cluster():
    """Two bare hosts, removed at the end; ALLREDUCE_KEEP=1 leaves them, and takes them again."""
    made = Cluster("cluster", 2)
    yield made
    if not KEEP:
        made.down()


@pytest.fixture(scope="module")
def two():
    """Two hosts on which a training can be launched; ALLREDUCE_KEEP=1 leaves them, and takes them again."""
    made = Launched()
    yield made
    if not KEEP:
        made.down()


@pytest.fixture
def script(tmp_path):
    """Write a training script of a few lines, and return its path."""

    def write(name, text):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return str(tmp_path / name)

    return write
