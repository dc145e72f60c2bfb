# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One document of a node's health, for schedulers, monitoring and people: what one run found, with what was before."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..machine.nvml_errors import UNUSABLE
from ..machine.topology import gpu_label
from .findings import verdict
from .presence import error_of, is_shown
from .samples import gpu_values, last_xids

FORMAT = 1
# What cures the node as a whole is what cures its worst finding; what needs most comes first.
ACTIONS = ("isolate", "reboot", "reset", "configure", "monitor", "application")


def action_of(findings):
    """Return the class of the action that covers all findings, ``none`` without any.

    What is not known goes to a person: it never takes a node out of service.
    """
    classes = {one["action_class"] if is_for_programs(one) else "monitor" for one in findings}
    return next((name for name in ACTIONS if name in classes), "none")


def is_for_programs(finding):
    return finding["severity"] != "unknown" and finding["action_class"] in ACTIONS


def describe_run(host, now, seconds, judged, known):
    """Return the document without what GPUs tell.

    ``judged``: {findings, notes, judged, skipped_checks}; ``known``: {key: since} of findings of earlier runs, see finding_key.
    """
    findings = [
        dict(one, subject=subject_of(one), since=known.get(finding_key(one), int(now))) for one in judged["findings"]
    ]
    return {
        "format": FORMAT,
        "host": host,
        "timestamp": round(now, 3),
        "duration_seconds": round(seconds, 3),
        "verdict": verdict(findings),
        "action": action_of(findings),
        "findings": findings,
        "notes": [dict(one, subject=subject_of(one)) for one in judged["notes"]],
        "judged": judged["judged"],
        "skipped_checks": judged["skipped_checks"],
        "gpus_expected": None,
        "gpus_answering": None,
        "gpus": [],
        "clock_offset_seconds": None,
    }


def subject_of(finding):
    """Return the subject of a finding: a GPU, a port, or None for the node."""
    return finding.get("subject") or finding["gpu"]


def finding_key(finding):
    """Return by what a finding is known again in the next run."""
    return " ".join(
        [finding["check"], subject_of(finding) or "node", finding["severity"], finding["action_class"] or "-"]
    )


def describe_gpus(node, readings, gpu_count):
    """Return the keys of the document that GPUs tell."""
    counters, xids = readings["counters"], last_xids(readings["log"])
    on_bus = [gpu for gpu in node["gpus"] if "pci" in gpu["seen_by"]]
    answering = [gpu for gpu in node["gpus"] if is_shown(gpu) and error_of(gpu, counters) not in UNUSABLE]
    return {
        "gpus_expected": gpu_count or len(on_bus),
        "gpus_answering": len(answering),
        "gpus": [
            {
                "label": gpu_label(gpu),
                "index": gpu["index"],
                "uuid": gpu["uuid"],
                "name": gpu["name"],
                "pci_bus_id": gpu["pci_bus_id"],
                "values": gpu_values(
                    gpu, counters.get(gpu["pci_bus_id"]), readings["samples"].get(gpu["pci_bus_id"]), xids
                ),
            }
            for gpu in node["gpus"]
        ],
        "clock_offset_seconds": (readings["host"].get("clock") or {}).get("offset_seconds"),
    }
