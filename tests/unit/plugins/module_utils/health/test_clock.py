# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel is asked for its clock's offset, and what it says is in its own unit."""

import json

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health import clock
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree


def told(place, **answer):
    (place / "adjtimex.json").write_text(json.dumps(answer))
    return clock.read_clock(FileTree(str(place)))


@pytest.mark.parametrize(("answer", "offset"), [
    ({"state": 0, "status": 0x1, "offset": -1500}, -0.0015),
    ({"state": 0, "status": 0x2001, "offset": 1500}, 0.0000015),
    ({"state": 1, "status": 0x1, "offset": 0}, 0.0),  # a leap second is to come
    ({"state": 5, "status": 0x40, "offset": 7}, None),
    ({"state": 0, "status": 0x41, "offset": 7}, None),
])  # fmt: skip
def test_an_answer(tmp_path, answer, offset):
    found = told(tmp_path, **answer)["offset_seconds"]
    assert found == (None if offset is None else pytest.approx(offset))


def test_a_recorded_machine_has_no_clock_but_its_own(tmp_path):
    assert clock.read_clock(FileTree(str(tmp_path))) == {}


def test_the_kernel_answers():
    """Reading changes nothing, so anybody may."""
    found = clock.ask()
    assert 0 <= found["state"] <= 5 and found["status"] >= 0
