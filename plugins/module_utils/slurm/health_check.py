# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HealthCheckProgram of Slurm, and the program that role health tells of a change (health_hook): drain this node, or give it back."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import time

from . import controller, decision, kept, leftovers

# What an epilog refused and that is gone is remembered until slurmctld's reason has been replaced.
REMEMBERED = 2 * decision.APART
WORDS = {
    "drain": "drained", "out": "is drained", "resume": "given back", "rename": "drained by its exit code, reason replaced",
    "withdraw": "given back, since too many nodes were drained within ten minutes; a person has to look",
    "held": "not drained, since too many nodes were drained within ten minutes; a person has to look",
    "theirs": "is drained by others", "waiting": "is drained until every check has passed",
    "spent": "not given back: it was drained too often; a person has to look", "in": "in service", "unknown": "not a node of the cluster",
}  # fmt: skip


def check(name, places, options, tell):
    """Decide once, and return an exit code: 1 where Slurm did not answer. A second one at the same time does nothing."""
    with kept.locked(places.directory, kept.DECIDED, waits=False) as is_ours:
        return look(name, places, options, tell) if is_ours else 0


def look(name, places, options, tell):
    document, began = kept.load(places.directory, kept.DOCUMENT, {}), time.time()
    if not document or not decision.is_current(document, began):
        tell("health.json is missing or old; nothing is done")
        return 0
    kept.forget(places.directory, lambda one: is_over(one, places, began))
    refused = kept.refused(places.directory)
    known = dict(kept.decided(places.directory), refused=refused)
    left = [one["what"] for one in refused if is_left(one, places)]
    try:
        began, nodes = time.time(), controller.nodes()
        decided = decision.decide(
            name, nodes, decision.reason_of(document) or (left or [""])[-1], document, known, options, began
        )
        outcome = carry_out(name, decided, places, known, began) if options["hook_mode"] == "act" else "shadow"
    except controller.RefusedError as error:
        tell("Slurm does not answer: %s" % error)
        return 1
    keep(places, known, outcome, decided.reason, began)
    if (outcome, decided.reason) != (known["outcome"], known["reason"]):
        tell(sentence(decided, outcome))
    return 0


def sentence(decided, outcome):
    """Return the action that was taken, or in shadow would be."""
    words = WORDS["held" if outcome == "held" and decided.action == "drain" else decided.action]
    reason = ": " + decided.reason if decided.reason else ""
    return "%s%s%s" % ("in shadow mode, would be " if outcome == "shadow" else "", words, reason)


def keep(places, known, outcome, reason, now):
    kept.decide(places.directory, {"outcome": outcome, "reason": reason, "time": now, "drains": known["drains"]})


def carry_out(name, decided, places, known, began):
    """Do what was decided; return what came of it: in, out, held, or what leaves the node as it is."""
    if decided.action == "drain":
        return drain(name, decided.reason, places, known, began)
    if decided.action == "rename":
        controller.rename(name, decided.reason)
        return "out"
    if decided.action in ("resume", "withdraw"):
        controller.resume(name)
        return "in" if decided.action == "resume" else "held"
    return decided.action


def drain(name, reason, places, known, began):
    """Drain the node, and take it back where others that did so at the same time came first: held."""
    keep(places, known, "draining", reason, began)
    controller.drain(name, reason)
    time.sleep(decision.SETTLE)
    nodes = controller.nodes()
    if decision.may_stay(name, nodes, time.time()):
        known["drains"] = [at for at in known["drains"] if began - at < decision.WEEK] + [began]
        return "out"
    if name in nodes and decision.is_ours(nodes[name]):
        controller.resume(name)
    return "held"


def is_left(note, places):
    """Return True if what an epilog could not clear is still there."""
    processes = [tuple(one) for one in note.get("processes", ())]
    return bool(leftovers.remaining(places.proc, processes)) or bool(
        note.get("gpus") and leftovers.unaccounted(note["gpus"], places.library, places.opener)
    )


def is_over(note, places, now):
    return now - note["time"] > REMEMBERED and not is_left(note, places)
