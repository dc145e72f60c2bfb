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
    ([(100, 0), (160, 6 * SECOND)], [False, False]),  # as much as is allowed
    ([(100, 50 * SECOND), (160, 55 * SECOND)], [False, False]),
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


def follow(known, gpus, uptime):
    return gpu_history.follow(known, gpus, {"uptime": uptime}, {"max_thermal_percent": 10})


@pytest.mark.parametrize(("seconds", "share", "measured"), [
    (30, 0.11, "11 % of the last 1 minutes"), (450, 0.5, "50 % of the last 8 minutes"),
    (60, 1.0, "100 % of the last 1 minutes"), (900, 0.5, "50 % of the last 15 minutes"),
])  # fmt: skip
def test_what_a_finding_tells(seconds, share, measured):
    (entry,), _after = follow({"GPU0": [[100, 0]]}, {"GPU0": int(seconds * share * SECOND), "GPU1": 0}, 100 + seconds)
    assert (entry["check"], entry["expected"], entry["measured"]) == ("throttling_time", "at most 10 %", "2 GPUs")
    (one,) = entry["findings"]
    assert (one["check"], one["gpu"], one["measured"]) == ("throttling_time", "GPU0", measured)
    assert one["expected"] == "at most 10 % of the time"


def test_a_time_that_is_too_short_is_no_share():
    limits = {"max_thermal_percent": 0}
    (entry,), _after = gpu_history.follow({"GPU0": [[100, 0]]}, {"GPU0": SECOND}, {"uptime": 129}, limits)
    assert entry["findings"] == []


def test_gpus_that_do_not_tell_are_not_judged():
    assert follow({}, {"GPU0": None}, 100) == ([], {})
    entries, known = follow({}, {"GPU0": None, "GPU1": 5}, 100)
    assert ([one["measured"] for one in entries], known) == (["1 GPUs"], {"GPU1": [[100, 5]]})


@pytest.mark.parametrize(("pair", "kept"), [
    ([100, 5], True), ([1000, 9], True), ([99, 5], False), ([1001, 5], False), ([500, 10], False),
])  # fmt: skip
def test_readings_count_that_are_recent_and_of_this_load_of_the_driver(pair, kept):
    _entries, known = follow({"GPU0": [pair]}, {"GPU0": 9}, 1000)
    assert known == {"GPU0": [pair] * kept + [[1000, 9]]}
