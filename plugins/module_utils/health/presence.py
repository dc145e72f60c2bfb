# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge whether all GPUs are there and answer; NVML's reason decides, not only whether there is an answer."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..machine.describe import describe
from ..machine.nvml_errors import UNUSABLE, worst
from ..machine.problems import problem, with_code
from ..machine.topology import gpu_label
from .findings import fault, judged

WITHOUT_ADDRESS = "gpu_lost"  # of a GPU that gpu_facts saw and NVML has no address of any more


def error_of(gpu, counters):
    """Return the worst that NVML said about a GPU that it showed, or None; ``counters``: of all GPUs."""
    reading = counters.get(gpu["pci_bus_id"])
    later = {"": WITHOUT_ADDRESS} if reading is None else reading.get("nvml_errors") or {}
    return worst(dict(gpu.get("nvml_errors") or {}, **later))


def is_shown(gpu):
    return "nvml" in gpu["seen_by"]


def usable(node, counters):
    """Return [(gpu, its counters)] of those that answer; what the others said before they were lost is not judged."""
    shown = [gpu for gpu in node["gpus"] if is_shown(gpu) and error_of(gpu, counters) not in UNUSABLE]
    return [(gpu, counters[gpu["pci_bus_id"]]) for gpu in shown]


def presence(node, counters, limits):
    """Judge whether there are as many GPUs as declared, and every one answers.

    coherence says where NVML cannot be asked.
    """
    gpus, entries = wanted(node, limits["gpu_count"]), []
    if limits["gpu_count"]:
        entries.append(count(gpus, limits["gpu_count"]))
    if gpus and node["driver"]["nvml_state"] == "ok":
        found = [silent(gpu, node) for gpu in gpus if not is_shown(gpu)]
        # NVML does not tell the address of a GPU that it cannot open: it is one of those that do not answer.
        if not found:
            found = [refused(one["subject"], [one]) for one in with_code(node["findings"], "gpu_not_opened")]
        failing = [(gpu, error_of(gpu, counters)) for gpu in gpus if is_shown(gpu)]
        found += [failed(gpu, error) for gpu, error in failing if error]
        answering = len([error for dummy, error in failing if error not in UNUSABLE])
        text = "%d of %d" % (answering, len(gpus))
        entries.append(judged("gpu_answers", "every GPU on the bus", text, found))
    return entries


def wanted(node, expected):
    """Return the GPUs of a node, without those of another driver where the others are as many as declared: then a guest has them."""
    held = {one["subject"] for one in with_code(node["findings"], "gpu_held")}
    free = [gpu for gpu in node["gpus"] if gpu["pci_bus_id"] not in held]
    return free if expected and len(free) == expected else node["gpus"]


def count(gpus, expected):
    found = None
    if len(gpus) != expected:
        found = fault("gpu_count", "fewer" if len(gpus) < expected else "more", expected, len(gpus))
    return judged("gpu_count", expected, len(gpus), [found])


def silent(gpu, node):
    """Find fault with a GPU that NVML does not show."""
    for one in with_code(node["findings"], "gpu_held"):
        if one["subject"] == gpu["pci_bus_id"]:
            return fault("gpu_answers", "held", "an answer", describe(one), gpu_label(gpu))
    return refused(gpu_label(gpu), with_code(node["findings"], "gpu_not_opened"))


def refused(name, problems):
    """Find fault with a GPU that NVML does not open; where it has several reasons, which one is this GPU's is not known."""
    text = "; ".join(describe(one) for one in problems) or "none"
    reasons = {one["detail"]["error"] for one in problems}
    reason = reasons.pop() if len(reasons) == 1 else None
    return fault("gpu_answers", reason if reason in UNUSABLE else "silent", "an answer", text, name)


def failed(gpu, error):
    """Find fault with a GPU that NVML shows and that answers with an error."""
    text = describe(problem("gpu_failing", gpu_label(gpu), error=error))
    return fault("gpu_answers", error, "an answer", text, gpu_label(gpu))
