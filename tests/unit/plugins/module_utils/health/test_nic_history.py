# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports over time: what drops, what flaps, what counts, and when it is trusted again."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health import nic_history
from ansible_collections.allreduce.gpu.plugins.module_utils.health.check_table import OPTIONS_OVER_TIME

LIMITS = {name: option.get("default") for name, option in OPTIONS_OVER_TIME.items()}
PORT = "mlx5_0/1"


def port(up=True, **counters):
    zero = dict.fromkeys(("symbol_error", "link_error_recovery", "link_downed", "local_link_integrity_errors",
                          "excessive_buffer_overrun_errors", "rnr_nak_retry_err", "roce_slow_restart"), 0)  # fmt: skip
    return {"up": up, "counters": {**zero, **counters}}


def told(*runs, rails=(PORT,), known=None):
    """The faults that each run tells; a run is (minutes since the first, the port or None)."""
    known, found = known or {}, []
    for minutes, seen in runs:
        ports = {PORT: seen} if seen else {}
        clock = {"now": 1e9 + 60 * minutes, "uptime": 5000 + 60.0 * minutes}
        entries, known = nic_history.follow(
            known, ports, [one for one in rails if (seen or {}).get("up")], clock, LIMITS
        )
        found.append([one["fault"] for entry in entries for one in entry["findings"]])
    return found


CASES = {
    "at rest": [(0, port(), []), (1, port(), []), (600, port(), [])],
    "down, and ten minutes after": [
        (0, port(), []), (1, port(up=False), ["down"]), (2, port(), ["dropped"]), (10, port(), ["dropped"]), (12, port(), []),
    ],
    "down between two runs": [(0, port(), []), (1, port(link_downed=1), ["dropped"]), (9, port(link_downed=1), ["dropped"]),
                              (12, port(link_downed=1), [])],
    "dropped before the first run": [(0, port(link_downed=7), []), (1, port(link_downed=7), [])],
    "three drops, until it is cleared": [
        (0, port(), []), (1, port(link_downed=1), ["dropped"]), (60, port(link_downed=2), ["dropped"]),
        (120, port(link_downed=3), ["flapping"]), (5000, port(link_downed=3), ["flapping"]),
    ],
    "three drops in more than 12 hours": [
        (0, port(), []), (1, port(link_downed=1), ["dropped"]), (400, port(link_downed=2), ["dropped"]),
        (800, port(link_downed=3), ["dropped"]), (820, port(link_downed=3), []),
    ],
    "gone": [(0, port(), []), (1, None, []), (2, None, []), (3, None, ["gone"]), (4, port(), [])],
    "counters reset": [(0, port(symbol_error=5000, link_downed=3), []), (1, port(), [])],
    "symbol errors in an hour": [(0, port(symbol_error=1000), []), (30, port(symbol_error=1100), []),
                                 (59, port(symbol_error=1121), ["symbol_errors"])],
    "symbol errors in two hours": [(0, port(), []), (40, port(symbol_error=100), []), (80, port(symbol_error=200), []),
                                   (120, port(symbol_error=300), [])],
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_port_over_time(case):
    assert told(*[run[:2] for run in case]) == [run[2] for run in case]


@pytest.mark.parametrize(("counter", "well", "fault", "code"), [
    ("local_link_integrity_errors", 0, 1, "fatal"), ("excessive_buffer_overrun_errors", 0, 1, "fatal"),
    ("rnr_nak_retry_err", 0, 1, "fatal"), ("link_error_recovery", 5, 6, "recoveries"), ("roce_slow_restart", 600, 601, "slow_restarts"),
])  # fmt: skip
def test_a_counter_that_rises_in_a_minute(counter, well, fault, code):
    assert told((0, port()), (1, port(**{counter: well}))) == [[], []]
    assert [
        set(run) for run in told((0, port()), (1, port(**{counter: fault})), (9, port(**{counter: fault})))[1:]
    ] == [{code}, {code}]
    assert told((0, port()), (1, port(**{counter: fault})), (12, port(**{counter: fault})))[2] == []


def test_a_port_that_never_was_a_rail_is_nobodys():
    assert told((0, port(up=False)), (1, port(up=False, link_downed=9)), rails=()) == [[], []]


def test_another_port_is_no_rail_while_a_rail_is_down():
    clock = {"now": 1e9, "uptime": 5000.0}
    _entries, known = nic_history.follow({}, {PORT: port(), "eno1/1": port()}, [PORT], clock, LIMITS)
    _entries, known = nic_history.follow(known, {PORT: port(up=False), "eno1/1": port()}, ["eno1/1"], clock, LIMITS)
    assert list(known) == [PORT]


def test_what_is_cleared_is_trusted_again():
    clock = {"now": 1e9, "uptime": 5000.0}
    known = {PORT: dict(nic_history.NEW, was_up=True, flapping=1e9, drops=[1e9], held={"fatal": 1e9})}
    assert nic_history.follow(known, {PORT: port()}, [], clock, LIMITS)[0][0]["findings"]
    cleared = nic_history.cleared(known, PORT)
    assert [entry["findings"] for entry in nic_history.follow(cleared, {PORT: port()}, [], clock, LIMITS)[0]] == [
        [],
        [],
    ]


def test_a_clock_that_was_set_back_holds_nothing_for_longer():
    known = {PORT: dict(nic_history.NEW, was_up=True, held={"fatal": 2e9})}
    _entries, after = nic_history.follow(known, {PORT: port()}, [], {"now": 1e9, "uptime": 1.0}, LIMITS)
    assert after[PORT]["held"] == {"fatal": 1e9}
