# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge what a node says over time, and return what the next run has to know."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from . import ata, gpu_history, nic_history
from .crashes import attempt


def follow(known, found, now, limits):
    """Return ([entry of judged], the next state); ``found``: what a run found, its ``history`` None where it could not look."""
    history = found["history"]
    after = dict(known)
    if history is None:
        return [], after
    clock = {"now": now, "uptime": history["uptime_seconds"] or now}
    entries = []
    for key, checks, judge in (
        ("ports", ("nic_links", "nic_counters"), lambda: nic_history.follow(known["ports"], history["ports"], history["rails"], clock, limits)),
        ("gpus", ("throttling_time",), lambda: gpu_history.follow(known["gpus"], history["gpus"], clock, limits)),
        ("drives", ("ata_health",), lambda: ata.follow(known["drives"], history.get("drives"), clock, limits)),
    ):  # fmt: skip
        entries += attempt(checks, keep, judge, after, key)
    return entries, after


def keep(judge, after, key):
    """Judge, and put what the next run has to know into its state."""
    entries, after[key] = judge()
    return entries


def is_left_out(entry, options):
    """Return True if a check was not judged: it is to be skipped, or there was nothing to measure with."""
    return entry["check"] in options["skip_checks"] or not entry["findings"] and entry["measured"] is None
