# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The decision about a node in Slurm by its health, and when that is left to a person: pure functions.

The record that counts is Slurm's own: every node reads there which nodes were drained for their health, and when. A node that finds no
room drains nothing; of several that drained themselves at once, those beyond the limit take it back.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re
from collections import namedtuple

from ..health.hook import ACTING, is_spent

PREFIX = "allreduce: "
# At most one node in so many, and one of a small cluster, is drained in so many seconds.
SHARE, WINDOW = 10, 600
# Seconds after which a node that drained itself looks again: by then it sees all that were earlier, though Slurm tells whole seconds.
SETTLE = 3
# A document that is older says nothing of the node.
STALE = 600
# What slurmctld says of a program of ours that refused a node by its exit code, and the seconds between its record and ours.
BY_EXIT_CODE, APART = ("Prolog error", "Epilog error"), 300
NAMED = 3
WEEK = 7 * 24 * 3600
# A node as Slurm has it; since: of the reason, None without any.
Seen = namedtuple("Seen", "state reason since")
# action: drain, resume, rename (the reason) and withdraw change the node; in, out, held, theirs, waiting, spent and unknown leave it.
Decided = namedtuple("Decided", "action reason")


def reason_of(document):
    """Return the reason to take the node out of service, in codes and names alone; empty where nothing demands it.

    What is not known, what a job did, and what only a person can judge is no reason.
    """
    found = [one for one in document["findings"] if takes_out(one)]
    words = ["%s %s: %s" % (one["check"], one["subject"] or "node", one["action_class"]) for one in found]
    more = ["%d more" % (len(words) - NAMED)] if len(words) > NAMED else []
    return PREFIX + plain("; ".join(words[:NAMED] + more)) if words else ""


def takes_out(finding):
    """Return True if jobs must not start on a node with this finding."""
    if finding["severity"] == "unknown":
        return False
    broken = finding["severity"] == "failed" and finding["action_class"] == "configure"
    return finding["action_class"] in ACTING or broken


def plain(text):
    """Return a text for a command line and a table of Slurm's: names of devices are not ours."""
    return re.sub(r"[^A-Za-z0-9_.,:/; -]", "?", text)[:200]


def is_current(document, now):
    return -60 <= now - document["timestamp"] <= STALE


def is_ours(seen):
    return seen.reason.startswith(PREFIX.strip())


def is_drained(seen):
    return seen.state.startswith("drain")


def decide(name, nodes, wanted, document, known, options, now):
    """Return the decision about the node.

    nodes: {name: Seen} of the cluster; wanted: the reason to drain it, or empty; known: {outcome, drains, refused} of earlier runs.
    """
    own = nodes.get(name)
    if own is None:
        return Decided("unknown", "")
    if is_drained(own) and not is_ours(own):
        mine = [one["what"] for one in known["refused"] if is_answer_to(own, one)]
        return Decided("rename", wanted or mine[-1]) if mine else Decided("theirs", own.reason)
    if is_drained(own) and wanted:
        is_surplus = known["outcome"] == "draining" and not may_stay(name, nodes, now)
        return Decided("withdraw" if is_surplus else "out", own.reason)
    if is_drained(own):
        return returned(own, document, known, options, now)
    if not wanted:
        return Decided("in", "")
    return Decided("drain" if has_room(name, nodes, now) else "held", wanted)


def is_answer_to(own, refused):
    """Return True if it was our prolog or epilog that made slurmctld drain the node: they have an exit code only."""
    return own.reason.startswith(BY_EXIT_CODE) and abs((own.since or 0) - refused["time"]) <= APART


def returned(own, document, known, options, now):
    """Return True if a node that we drained is given back: after a run that began later and in which every check passed."""
    began = document["timestamp"] - document["duration_seconds"]
    if document["verdict"] != "ok" or own.since is None or began <= own.since:
        return Decided("waiting", own.reason)
    return Decided("spent" if is_spent(known["drains"], options, now) else "resume", own.reason)


def most(nodes):
    """Return how many nodes may be drained in the window."""
    return max(1, len(nodes) // SHARE)


def recent(nodes, now):
    """Return [(since, name)] of the nodes that were drained for their health within the window, the first one first.

    One whose time Slurm does not tell counts as drained now: what is not known makes no room.
    """
    drained = [(name, seen) for name, seen in nodes.items() if is_ours(seen) and is_drained(seen)]
    found = ((now if seen.since is None else seen.since, name) for name, seen in drained)
    return sorted((since, name) for since, name in found if now - since < WINDOW)


def has_room(name, nodes, now):
    """Return True if the node may be drained."""
    return len([one for dummy, one in recent(nodes, now) if one != name]) < most(nodes)


def may_stay(name, nodes, now):
    """Return True if the node, which drained itself, is among those that may: all nodes that drained themselves see the same order."""
    names = [one for dummy, one in recent(nodes, now)]
    return name not in names or names.index(name) < most(nodes)
