# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Examine a node in a child with a deadline: a driver that hangs in the kernel is reported, and no process waits for it."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import gc

from ..machine.child import bounded
from .findings import fault, judged, verdict, without_findings


def within(seconds, work):
    """Return the answer of ``work()``, as judge gives it; or that the driver does not answer, which no skipped check hides.

    Raise ValueError with what went wrong in the child.
    """

    def speak(say):
        gc.disable()  # the child ends with its answer, and would copy the parent's memory to look through it
        try:
            say({"found": work()})
        except Exception as error:  # pylint: disable=broad-except
            kind = "" if isinstance(error, (EnvironmentError, ValueError)) else "%s: " % type(error).__name__
            say({"error": "%s%s" % (kind, error)})

    answers, ending = bounded(speak, seconds)
    if ending == "timeout":
        return unanswered(seconds)
    answer = answers[0] if answers else {}
    found = answer.get("found")
    if ending != "done" or found is None:
        raise ValueError(answer.get("error") or "its examination ended with %s" % ending)
    return found


def unanswered(seconds):
    found = judged("nvml", "an answer", "no answer in %d seconds" % seconds)
    found["findings"] = [fault("nvml", "hangs", found["expected"], found["measured"])]
    return {
        "verdict": verdict(found["findings"]),
        "findings": found["findings"],
        "notes": [],
        "judged": [without_findings(found)],
        "skipped_checks": [],
        "counters": {},
    }
