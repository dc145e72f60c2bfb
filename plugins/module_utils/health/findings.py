# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words in which health is told: findings, and what was judged whether or not it gave any."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

# The worst finding is the verdict; what is unknown does not change it.
SEVERITIES = ("failed", "reboot_required", "degraded", "unknown")


def finding(check, expected, measured, severity, action, gpu=None):
    """Return the record of one thing that is not as it should be, or (unknown) of which that cannot be told."""
    return {
        "check": check,
        "gpu": gpu,
        "expected": expected,
        "measured": measured,
        "severity": severity,
        "action": action,
    }


def judged(check, category, expected, measured, findings=()):
    """Return the record of one thing that was judged; no ``findings``: it is as expected."""
    return {
        "check": check,
        "category": category,
        "expected": expected,
        "measured": measured,
        "findings": [entry for entry in findings if entry],
    }


def verdict(findings):
    """Return ``ok`` or the worst severity; what is unknown is neither."""
    present = {entry["severity"] for entry in findings}
    return next((severity for severity in SEVERITIES[:3] if severity in present), "ok")


def number_of(gpus):
    return "%d GPU%s" % (len(gpus), "" if len(gpus) == 1 else "s")
