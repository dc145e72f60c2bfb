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
    "symbol errors after a reset of the counter": [(0, port(symbol_error=5000), []), (1, port(), []),
                                                   (30, port(symbol_error=121), ["symbol_errors"])],
    "symbol errors in two hours": [(0, port(), []), (40, port(symbol_error=100), []), (80, port(symbol_error=200), []),
                                   (120, port(symbol_error=300), [])],
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_port_over_time(case):
    assert told(*[run[:2] for run in case]) == [run[2] for run in case]


def test_a_drop_is_over_in_time_where_the_clock_was_set_back():
    """A machine without a clock of its own, or with a wrong one, is set right some time after its boot."""
    known = {PORT: dict(nic_history.NEW, was_up=True, drops=[2e9])}
    assert told((0, port()), (9, port()), (11, port()), known=known) == [["dropped"], ["dropped"], []]


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


def test_an_adapter_that_was_taken_away_is_forgotten():
    """As after a cloud's interface was detached, or has another name: those that are there are followed again."""
    clock = {"now": 1e9, "uptime": 5000.0}
    known = {PORT: dict(nic_history.NEW, was_up=True, missing=3)}
    entries, after = nic_history.follow(known, {"b/1": port()}, ["b/1"], clock, LIMITS)
    assert [one["fault"] for one in entries[0]["findings"]] == ["gone"] and set(after) == {PORT}
    entries, after = nic_history.follow(nic_history.cleared(after, PORT), {"b/1": port()}, ["b/1"], clock, LIMITS)
    assert [entry["findings"] for entry in entries] == [[], []] and set(after) == {"b/1"}


def test_a_clock_that_was_set_back_holds_nothing_for_longer():
    known = {PORT: dict(nic_history.NEW, was_up=True, held={"fatal": 2e9})}
    _entries, after = nic_history.follow(known, {PORT: port()}, [], {"now": 1e9, "uptime": 1.0}, LIMITS)
    assert after[PORT]["held"] == {"fatal": 1e9}


def follow(seen, minutes=0, **known):
    """The entries of one run over a port of which this is known, at 1e9 seconds, and what is known after it."""
    clock = {"now": 1e9, "uptime": 50000.0}
    before = {PORT: dict(nic_history.NEW, was_up=True, uptime=clock["uptime"] - 60.0 * minutes, **known)}
    entries, after = nic_history.follow(before, {PORT: seen} if seen else {}, [], clock, LIMITS)
    return entries, after[PORT]


@pytest.mark.parametrize(("seen", "known", "fault", "expected", "measured"), [
    (port(up=False), {}, "down", "up", "down"),
    (None, {"missing": 2}, "gone", "up", "missing in 3 runs"),
    (None, {"missing": 7}, "gone", "up", "missing in 8 runs"),
    (port(), {"drops": [1e9 - 30]}, "dropped", "up for 10 minutes", "up again, 0 minutes after it dropped"),
    (port(), {"drops": [1e9 - 7000, 1e9 - 599]}, "dropped", "up for 10 minutes", "up again, 9 minutes after it dropped"),
    (port(), {"drops": [1e9 - 540]}, "dropped", "up for 10 minutes", "up again, 9 minutes after it dropped"),
    (port(), {"drops": [1e9 + 90]}, "dropped", "up for 10 minutes", "up again, 0 minutes after it dropped"),  # clock set back
    (port(), {"flapping": 1e9 - 60}, "flapping", "up", "dropped 3 times in 12 hours"),
    (port(), {"flapping": 1e9, "drops": [1e9 - 900] * 4}, "flapping", "up", "dropped 4 times in 12 hours"),
    (port(), {"held": {"fatal": 1e9 - 599}}, "fatal", "at rest", "rising 9 minutes ago"),
    (port(), {"held": {"fatal": 1e9 - 540}}, "fatal", "at rest", "rising 9 minutes ago"),
    (port(), {"held": {"fatal": 1e9}}, "fatal", "at rest", "rising 0 minutes ago"),
])  # fmt: skip
def test_what_a_finding_tells(seen, known, fault, expected, measured):
    (links, counters), _after = follow(seen, **known)
    (one,) = links["findings"] + counters["findings"]
    assert (one["fault"], one["expected"], one["measured"], one["subject"]) == (fault, expected, measured, PORT)
    assert one["check"] == ("nic_counters" if fault == "fatal" else "nic_links")


def test_both_checks_are_told_of_all_ports():
    entries, _after = follow(port())
    assert [(one["check"], one["expected"], one["measured"]) for one in entries] == [
        ("nic_links", "up", "1 ports"),
        ("nic_counters", "at rest", "1 ports"),
    ]


def test_a_node_without_ports_of_training_is_not_judged():
    clock = {"now": 1e9, "uptime": 5000.0}
    assert nic_history.follow({}, {PORT: port()}, [], clock, LIMITS) == ([], {})


@pytest.mark.parametrize(("seen", "known", "after"), [
    (port(), {"missing": 2}, {"missing": 0, "was_up": True, "drops": []}),
    (None, {"missing": 2, "counters": {"link_downed": 4}}, {"missing": 3, "was_up": True, "drops": [], "counters": {"link_downed": 4}}),
    (port(up=None), {}, {"was_up": True, "drops": []}),  # the kernel does not say
    (port(up=False), {}, {"was_up": False, "drops": [1e9]}),
    (port(), {"drops": [1e9 - 43200, 1e9 - 43199]}, {"drops": [1e9 - 43199]}),
    (port(up=False), {"drops": [1e9 - 2, 1e9 - 1]}, {"flapping": None}),  # told when it is up again
    (None, {"drops": [1e9 - 2, 1e9 - 1, 1e9]}, {"flapping": None}),
    (port(), {"drops": [1e9 - 2, 1e9 - 1, 1e9]}, {"flapping": 1e9}),
    (port(), {"flapping": 5.0}, {"flapping": 5.0}),
    (port(), {"held": {"fatal": 1e9 - 600, "recoveries": 1e9 - 599}}, {"held": {"recoveries": 1e9 - 599}}),
    (port(symbol_error=7), {"readings": [[46399.0, 1], [46400.0, 2]]}, {"readings": [[46400.0, 2], [50000.0, 7]]}),
    ({"up": True, "counters": {}}, {"readings": [[46400.0, 2]]}, {"readings": [[46400.0, 2]], "uptime": 50000.0}),
])  # fmt: skip
def test_what_is_known_after_a_run(seen, known, after):
    _entries, found = follow(seen, **known)
    assert {name: found[name] for name in after} == after


@pytest.mark.parametrize(("counter", "minutes", "well"), [
    ("link_error_recovery", 0.5, 5), ("link_error_recovery", 10, 50),
    ("roce_slow_restart", 0, 10), ("roce_slow_restart", 2, 1200),
])  # fmt: skip
def test_what_may_rise_in_the_time_between_two_runs(counter, minutes, well):
    for number, held in ((well, 0), (well + 1, 1)):
        _entries, after = follow(port(**{counter: number}), minutes, counters=port()["counters"])
        assert len(after["held"]) == held


@pytest.mark.parametrize(("number", "held"), [(121, {}), (122, {"symbol_errors": 1e9})])
def test_symbol_errors_count_from_the_first_reading_of_an_hour(number, held):
    readings = [[46399.0, 0], [46400.0, 1], [49000.0, 100]]
    assert follow(port(symbol_error=number), readings=readings)[1]["held"] == held


@pytest.mark.parametrize(("number", "held"), [(5, {}), (6, {"recoveries": 1e9})])
def test_a_counter_that_was_reset_counts_from_zero(number, held):
    before = port(link_error_recovery=9)["counters"]
    assert follow(port(link_error_recovery=number), counters=before)[1]["held"] == held


def test_counters_that_a_port_does_not_have_do_not_rise():
    clock, seen = {"now": 1e9, "uptime": 5000.0}, {"up": True, "counters": {"link_downed": 0}}
    known = {PORT: dict(nic_history.NEW, was_up=True, counters={"link_downed": 0})}
    assert nic_history.follow(known, {PORT: seen}, [], clock, dict.fromkeys(LIMITS, 0))[1][PORT]["held"] == {}


def test_every_port_tells_its_own_findings():
    bad = dict(nic_history.NEW, was_up=True, held={"fatal": 1e9})
    down, clock = {"a": port(up=False), "b": port(up=False)}, {"now": 1e9, "uptime": 5000.0}
    entries, _after = nic_history.follow({"a": bad, "b": bad}, down, [], clock, LIMITS)
    assert [[one["subject"] for one in entry["findings"]] for entry in entries] == [["a", "b"], ["a", "b"]]


def test_another_port_becomes_a_rail_while_all_rails_are_up():
    clock = {"now": 1e9, "uptime": 5000.0}
    known = {PORT: dict(nic_history.NEW, was_up=True)}
    _entries, after = nic_history.follow(known, {PORT: port(), "b": port()}, ["b"], clock, LIMITS)
    assert sorted(after) == ["b", PORT]


def test_a_link_that_has_been_up_for_ten_minutes_is_trusted():
    (links, _counters), _after = follow(port(), drops=[1e9 - 600])
    assert links["findings"] == []


def test_clearing_a_port_leaves_the_others():
    known = {name: dict(nic_history.NEW, flapping=1.0, drops=[1.0], held={"fatal": 1.0}, was_up=True) for name in "ab"}
    assert nic_history.cleared(known, "a") == {"a": dict(nic_history.NEW, was_up=True), "b": known["b"]}
