# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A check that crashes, on reading or on judging, is unknown: it condemns no node, stops no other check, and is never well."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..machine.topology import gpu_label
from .findings import finding, judged

EXPECTED = "a judgement"
# What the readers of health.reading read for.
READERS = {
    "read_memory": ("ecc_errors", "row_remapping", "page_retirement", "sram_errors", "spare_rows"),
    "read_clocks": ("throttling", "pcie_generation", "peer_application_clocks", "peer_temperature"),
    "read_condition": ("temperature", "peer_temperature", "inforom", "stale_processes"),
    "read_fields": ("aggregate_errors", "nvlink_errors", "pcie_replays", "recovery_action"),
}
# The same of health.host_reading; what is declared says itself that it is not known.
HOST_READERS = {
    "memory_errors": ("memory_errors",),
    "nccl": ("nccl_settings",),
    "aer": ("aer_errors",),
    "clock": ("kernel_clock",),
    "disks": ("disks",),
    "nvme": ("nvme_health",),
    "network_mounts": ("network_mounts",),
    "rivals": ("module_loaded",),
    "uptime_seconds": ("pcie_replays", "oom_kills"),
}


def attempt(checks, judge, *arguments):
    """Return the entries of a function that judges, one or several, or entries that say that each of its checks crashed."""
    try:
        found = judge(*arguments)
        return found if isinstance(found, list) else [found]
    except Exception as error:  # pylint: disable=broad-except
        return [judged(check, EXPECTED, None, [crash(check, type(error).__name__)]) for check in checks]


def crash(check, what, gpu=None):
    cause, action = "the check crashed (%s)" % what, "report it with the output of gpu_facts"
    return finding(check, EXPECTED, None, "unknown", cause, action, gpu, "monitor")


def with_unread(entries, gpus, crashed):
    """Return the entries, with each check unknown for which a reader failed to read.

    ``gpus``: [(gpu, counters)], ``crashed``: {key: what}, see host_reading.
    """
    entries = list(entries)
    for gpu, counters in gpus:
        for reader, what in sorted((counters.get("nvml_errors") or {}).items()):
            for check in READERS.get(reader, ()):
                add(entries, check, crash(check, what, gpu_label(gpu)))
    for key, what in sorted(crashed.items()):
        for check in HOST_READERS.get(key, ()):
            add(entries, check, crash(check, what))
    return entries


def add(entries, check, found):
    """Add a finding to a check, which may have judged nothing else."""
    own = [entry for entry in entries if entry["check"] == check]
    if not own:
        own = [judged(check, EXPECTED, None)]
        entries += own
    own[0]["findings"].append(found)
