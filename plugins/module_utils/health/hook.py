# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a scheduler's program is told that a node's health has changed, and when that is left to a person.

Who acts on its own can drain a whole cluster: in shadow it is only said what would be done, and a budget ends it.
Sources: NVIDIA/NVSentinel (more than one remediation within 7 days is a matter for a person), oracle-quickstart/oci-hpc
check_gpu_setup.py (no more than 3 reboots a day).
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import signal
import subprocess

# What takes a node out of service: such changes are limited in number.
ACTING = ("reset", "reboot", "isolate")
DAY = 24 * 3600
# (seconds, how many changes that take the node out of service are told in that time)
BUDGETS = ((DAY, "a day"), (7 * DAY, "7 days"))


def known_to(state, options):
    """Return the state as far as it was told: another program, or one that is called at last, knows nothing yet."""
    own = [options["hook"], options["hook_mode"]]
    return state if state["hook"] == own else dict(state, verdict=None, action=None, acts=[], hook=own)


def decide(state, document, options, now):
    """Return {``program``, ``mode``, ``outcome``, ``acts``}; None where nothing has changed, or no program is declared.

    ``outcome``: call, shadow, or held (the budget is spent). ``acts``: times of the changes that count, as the next run has to know them.
    """
    before = (state["verdict"] or "ok", state["action"] or "none")
    after = (document["verdict"], document["action"])
    if not options["hook"] or before == after:
        return None
    acts = [at for at in state["acts"] if 0 <= now - at < BUDGETS[-1][0]]
    acting = document["action"] in ACTING and document["action"] != before[1]
    held = acting and is_spent(acts, options, now)
    outcome = "held" if held else "call" if options["hook_mode"] == "act" else "shadow"
    return {
        "program": options["hook"],
        "mode": options["hook_mode"],
        "outcome": outcome,
        "before": list(before),
        "after": list(after),
        "acts": acts + ([now] if acting and not held else []),
    }


def is_spent(acts, options, now):
    """Return True if the node was taken out of service too often; then a person has to look."""
    limits = (options["hook_per_day"], options["hook_per_week"])
    return any(
        len([at for at in acts if now - at < seconds]) >= most for (seconds, dummy), most in zip(BUDGETS, limits)
    )


def sentence(decided):
    """Return a sentence about the decision, for the journal."""
    words = {
        "call": "calls %s",
        "shadow": "would call %s (shadow)",
        "held": "does not call %s: the node was taken out of service too often; a person has to look",
    }[decided["outcome"]]
    change = "verdict %s, action %s -> verdict %s, action %s" % tuple(decided["before"] + decided["after"])
    return "%s: %s" % (change, words % decided["program"])


def call(program, path, seconds):
    """Run the program with the document's path; return how it ended: ``done``, ``exit N``, ``timeout`` or ``failed``."""
    try:
        process = subprocess.Popen([program, path], stdin=subprocess.DEVNULL, start_new_session=True)
    except (IOError, OSError):
        return "failed"
    try:
        code = process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return "timeout"
    return "done" if code == 0 else "exit %d" % code
