# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Throttling over time: the share of the last minutes, whatever the moment shows."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health import gpu_history

SECOND = 10**9


def told(*runs):
    """Whether each run finds fault; a run is (seconds since boot, nanoseconds of slowdown)."""
    known, found = {}, []
    for uptime, total in runs:
        entries, known = gpu_history.follow(known, {"GPU0": total}, {"uptime": uptime}, {"max_thermal_percent": 10})
        found.append(any(entry["findings"] for entry in entries))
    return found


@pytest.mark.parametrize(("runs", "expected"), [
    ([(100, 0), (160, 0)], [False, False]),
    ([(100, 0), (160, 5 * SECOND)], [False, False]),
    ([(100, 0), (160, 7 * SECOND)], [False, True]),
    ([(100, 90 * SECOND)], [False]),  # before the first run
    ([(100, 0), (110, 10 * SECOND)], [False, False]),  # too short to say
    ([(100, 0), (900, 100 * SECOND), (1900, 100 * SECOND)], [False, True, False]),
    ([(100, 50 * SECOND), (160, 0), (220, SECOND)], [False, False, False]),  # the driver was loaded again
    ([(100, None), (160, None)], [False, False]),
])  # fmt: skip
def test_the_share_of_the_time(runs, expected):
    assert told(*runs) == expected


def test_old_readings_are_forgotten():
    _entries, known = gpu_history.follow(
        {"GPU0": [[10, 0], [2000, 0]]}, {"GPU0": 0}, {"uptime": 2060}, {"max_thermal_percent": 10}
    )
    assert known == {"GPU0": [[2000, 0], [2060, 0]]}
