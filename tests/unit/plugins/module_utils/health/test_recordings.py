# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines that "nvidia-smi topo -m" recorded, rebuilt: their health gives no alarm."""

from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.tests.lab.nvml.rebuilding import rebuild

RECORDINGS = sorted((Path(__file__).resolve().parents[4] / "fixtures" / "topologies").glob("*.txt"))


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_no_false_alarm(examine, path):
    """The one recording with a fault shows a GPU that lost its NVLinks."""
    found = examine(rebuild(path.stem, path.read_text(encoding="utf-8")))
    alarms = {(one["check"], one["gpu"]) for one in found["findings"]}
    assert alarms == ({("nvlinks", "GPU2")} if path.stem == "b200-lost-nvlink" else set())


def test_there_are_recordings():
    assert len(RECORDINGS) > 20
