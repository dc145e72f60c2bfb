# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words in which health is told: findings, and what was judged whether or not it gave any."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from .check_table import BY_CODE, FAULTS

# The worst finding is the verdict; what is unknown is not success, and no known fault either.
SEVERITIES = ("failed", "reboot_required", "degraded", "unknown")
# What a job did is worth telling, and no fault of the node: it is no finding.
NOTE = "note"


def finding(check, expected, measured, severity, cause, action, gpu=None, action_class=None):
    """Return the record of one thing that is not as it should be, or (unknown) of which that cannot be told.

    ``cause``: why, in words; ``action``: what to do; ``action_class``: one of check_table.ACTION_CLASSES.
    """
    return {
        "check": check,
        "gpu": gpu,
        "expected": expected,
        "measured": measured,
        "severity": severity,
        "cause": cause,
        "action": action,
        "action_class": action_class,
    }


def fault(check, code, expected, measured, gpu=None, action=None):
    """Return the finding of a fault in check_table; ``action``: where more is known than stands there."""
    row = FAULTS[check, code]
    return finding(check, expected, measured, row.severity, row.meaning, action or row.action, gpu, row.action_class)


def no_answer(check, expected, name, source, function):
    """Return the finding that NVML failed to answer ``function``; None where the GPU does not have what was asked for.

    ``source``: a GPU or its counters, with ``nvml_errors``.
    """
    code = (source.get("nvml_errors") or {}).get(function)
    if code is None:
        return None
    return unanswered(check, expected, name, code)


def unanswered(check, expected, name, code):
    """Return the finding that NVML failed to answer, with this code of nvml_errors."""
    cause = "NVML did not answer (%s)" % code.replace("_", " ")
    return finding(
        check, expected, None, "unknown", cause, "run with become, then check the kernel log", name, "monitor"
    )


def judged(check, expected, measured, findings=()):
    """Return the record of one thing that was judged; no ``findings`` but notes: it is as expected, and was measured as they say."""
    notes = [entry for entry in findings if entry and entry["severity"] == NOTE]
    return {
        "check": check,
        "category": BY_CODE[check].category,
        "expected": expected,
        "measured": "; ".join(in_words(note) for note in notes) or measured,
        "findings": [entry for entry in findings if entry and entry["severity"] != NOTE],
        "notes": notes,
    }


def in_words(note):
    return "%s of %s" % (note["measured"], note["gpu"]) if note["gpu"] else str(note["measured"])


def without_findings(entry):
    """Return an entry without its findings and notes, which are told for the whole node."""
    return {key: value for key, value in entry.items() if key not in ("findings", "notes")}


def verdict(findings):
    """Return ``ok`` or the worst severity."""
    present = {entry["severity"] for entry in findings}
    return next((severity for severity in SEVERITIES if severity in present), "ok")


def number_of(gpus):
    return "%d GPU%s" % (len(gpus), "" if len(gpus) == 1 else "s")
