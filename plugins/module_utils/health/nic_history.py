# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge the ports of the training network over time: links that drop or flap, counters that rise.

Pure: what was before is in the state, and goes into the next. Sources of times: leptonai/gpud, infiniband/component.go and
store/scan_flaps.go (10 minutes; three drops in 12 hours); of counters: NVIDIA/NVSentinel, nic-health-monitor.md.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from .findings import fault, judged

PORTS, COUNTERS = "nic_links", "nic_counters"
HELD = 600  # seconds for which a link that has dropped is not trusted again
FLAP_WINDOW, FLAPS = 12 * 3600, 3
HOUR = 3600
MISSING = 3  # runs without an adapter before it counts as gone
# A healthy port leaves these as they are.
FATAL = ("link_downed", "excessive_buffer_overrun_errors", "local_link_integrity_errors", "rnr_nak_retry_err")
NEW: dict = {
    "was_up": None,
    "drops": [],
    "flapping": None,
    "missing": 0,
    "held": {},
    "readings": [],
    "counters": None,
    "uptime": None,
}


def follow(known, ports, rails, clock, limits):
    """Return ([entry of judged], the ports for the next state).

    ``known``: those of the state, ``ports``: see ports.read_ports, ``rails``: names of the ports that training uses now,
    ``clock``: {``now``, ``uptime``} in seconds.
    """
    # While a rail is down another port may look like one.
    whole = all((ports.get(name) or {}).get("up") for name in known)
    watched = sorted(set(known) | (set(rails) if whole or not known else set()))
    after, links, counters = {}, [], []
    for name in watched:
        before = dict(NEW, **known.get(name, {}))
        after[name] = follow_one(before, ports.get(name), clock, limits)
        links += link_findings(name, after[name], ports.get(name), clock["now"])
        counters += counter_findings(name, after[name], clock["now"])
    if not watched:
        return [], after
    text = "%d ports" % len(watched)
    return [judged(PORTS, "up", text, links), judged(COUNTERS, "at rest", text, counters)], after


def follow_one(before, port, clock, limits):
    """Return the history of one port after this run."""
    now, counters = clock["now"], (port or {}).get("counters") or {}
    up = port["up"] if port else False
    risen = rises(before, counters)
    dropped = before["was_up"] and up is False and port is not None or risen.get("link_downed", 0) > 0
    drops = [min(at, now) for at in before["drops"] if now - at < FLAP_WINDOW] + ([now] if dropped else [])
    held = {code: min(at, now) for code, at in before["held"].items() if now - at < HELD}
    symbols = counters.get("symbol_error")
    # Those before a reset of the counter are no beginning to count from.
    readings = [
        pair for pair in before["readings"]
        if clock["uptime"] - pair[0] <= HOUR and (symbols is None or pair[1] <= symbols)
    ]  # fmt: skip
    readings = readings + ([] if symbols is None else [[clock["uptime"], symbols]])
    hour = [] if symbols is None else [number for dummy, number in readings]
    held.update(dict.fromkeys(rising(before, hour, risen, clock, limits), now))
    return {
        "was_up": up if port and up is not None else before["was_up"],
        "drops": drops,
        "flapping": before["flapping"] or (now if len(drops) >= FLAPS and up else None),
        "missing": 0 if port else before["missing"] + 1,
        "held": held,
        "readings": readings,
        "counters": counters or before["counters"],
        "uptime": clock["uptime"],
    }


def rises(before, counters):
    """Return {counter: by how much it rose since the last run}; one that fell was reset, and counts from zero."""
    known = before["counters"] or {}
    return {
        name: number - known[name] if number >= known[name] else number
        for name, number in counters.items() if name in known
    }  # fmt: skip


def rising(before, hour, risen, clock, limits):
    """Return the codes of the faults that rising counters give now; ``hour``: the numbers of symbol errors in the last hour."""
    found = ["fatal"] if any(risen.get(name) for name in FATAL[1:]) else []
    seconds = clock["uptime"] - before["uptime"] if before["uptime"] is not None else 0
    if hour and hour[-1] - hour[0] > limits["max_symbol_errors_per_hour"]:
        found.append("symbol_errors")
    # Runs may be close together: less than these times is not stretched to them.
    if risen.get("link_error_recovery", 0) > limits["max_link_recoveries_per_minute"] * max(seconds / 60.0, 1):
        found.append("recoveries")
    if risen.get("roce_slow_restart", 0) > limits["max_roce_slow_restarts_per_second"] * max(seconds, 1):
        found.append("slow_restarts")
    return found


def link_findings(name, known, port, now):
    """Return the findings of a link: it is down or gone, was down lately, or comes and goes."""
    found = []
    if known["flapping"]:
        text = "dropped %d times in 12 hours" % max(len(known["drops"]), FLAPS)
        found.append(told(PORTS, "flapping", "up", text, name))
    if port is None and known["missing"] >= MISSING:
        found.append(told(PORTS, "gone", "up", "missing in %d runs" % known["missing"], name))
    elif port is not None and port["up"] is False:
        found.append(told(PORTS, "down", "up", "down", name))
    elif known["drops"] and now - known["drops"][-1] < HELD and not known["flapping"]:
        text = "up again, %d minutes after it dropped" % max((now - known["drops"][-1]) // 60, 0)
        found.append(told(PORTS, "dropped", "up for 10 minutes", text, name))
    return found


def counter_findings(name, known, now):
    return [
        told(COUNTERS, code, "at rest", "rising %d minutes ago" % max((now - at) // 60, 0), name)
        for code, at in sorted(known["held"].items())
    ]


def told(check, code, expected, measured, subject):
    return dict(fault(check, code, expected, measured), subject=subject, fault=code)


def cleared(known, name):
    """Return the ports without what was held against one, and without it where its adapter is gone."""
    found = {key: dict(port, drops=[], flapping=None, held={}) if key == name else port for key, port in known.items()}
    return {key: port for key, port in found.items() if key != name or not port["missing"]}
