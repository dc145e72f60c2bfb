# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge whether the loaded driver, its library and the fabric work together, as the kernel and NVML tell.

What the plan wants installed is another question, which only drift answers (plugin_utils/drift).
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from ..machine.describe import describe
from ..machine.fabric_health import QUESTIONS
from ..machine.problems import is_unusable
from ..machine.topology import gpu_label
from .findings import fault, judged, no_answer

# {code of a problem of gpu_node: its fault}; None: the problem says which.
FABRIC_FAULTS = {"fabric_unhealthy": None, "fabric_split": "split", "fabric_apart": "apart"}
# kernel/module/signing.c: what Secure Boot, or lockdown(7), makes of a module without a signature that is known.
REFUSED = r"Loading of (?:module with \w+ \w+|unsigned module) is rejected|Lockdown: [^\n:]+: unsigned module loading is restricted"
FABRIC_QUESTIONS = tuple(sorted({function for function, dummy_structure in QUESTIONS}))


def judge_coherence(node, host, log):
    """Return judgements of a gpu_node with GPUs; none of one without. ``host``: see host_reading, ``log``: the kernel's, or None."""
    if not node["gpus"]:
        return []
    found = [module_loaded(node, host.get("rivals") or {}, log or "")]
    if node["driver"]["loaded_version"]:
        found += [driver_library(node["driver"])] + nvml(node["driver"]) + fabric(node)
    return found


def module_loaded(node, rivals, log):
    """Judge whether there is a driver at all, and name what keeps it away: another one that has the GPUs, or the kernel."""
    loaded, expected, problem = node["driver"]["loaded_version"], "a loaded driver", None
    if loaded is None:
        holders = {}
        for gpu in node["gpus"]:
            if gpu.get("kernel_driver") not in (None, "nvidia"):
                holders.setdefault(gpu["kernel_driver"], []).append(gpu["pci_bus_id"])
        refused = re.search(REFUSED, log)
        if holders:
            text = "; ".join(held(name, addresses, rivals) for name, addresses in sorted(holders.items()))
            problem = fault("module_loaded", "held", expected, text)
        elif refused:
            problem = fault("module_loaded", "refused", expected, "not loaded; the kernel says: " + refused.group())
        else:
            problem = fault("module_loaded", "absent", expected, "not loaded")
    return judged("module_loaded", expected, loaded, [problem])


def held(name, addresses, rivals):
    """Return the addresses of a driver and, of one that is loaded by itself, the reason it is still there; ``rivals``: see host_reading."""
    text = "%s has %s" % (name, ", ".join(sorted(addresses)))
    rival = rivals.get(name)
    if rival is None:
        return text
    if not rival["blacklisted"]:
        return text + "; nothing below modprobe.d keeps it from loading"
    return text + "; %s blacklists it: the initramfs is older, or the node was not rebooted" % rival["blacklisted"]


def driver_library(driver):
    """Judge whether the NVML library has the loaded module's version; they differ between an upgrade and a reboot."""
    loaded, library, problem = driver["loaded_version"], driver["library_version"], None
    if library is None:
        problem = fault("driver_library", "missing", loaded, "missing")
    elif library != loaded:
        problem = fault("driver_library", "other_version", loaded, library)
    return judged("driver_library", loaded, library, [problem])


def nvml(driver):
    """Judge whether NVML answers; with module and library of different versions it cannot."""
    if driver["library_version"] != driver["loaded_version"]:
        return []
    problem = None
    if driver["nvml_state"] == "pynvml_missing":
        problem = fault("nvml", "no_binding", "an answer", None)
    elif driver["nvml_state"] != "ok":
        problem = fault("nvml", "no_answer", "an answer", driver["nvml"])
    return [judged("nvml", "an answer", "an answer", [problem])]


def fabric(node):
    """Judge whether the fabric is set up and well as its GPUs see it; CUDA fails with error 802 until it is.

    Its manager's service is another question, and not on this node where the fabric spans a rack.
    """
    state = node["fabric"]["state"]
    found = [unhealthy(one) for one in node["findings"] if one["code"] in FABRIC_FAULTS]
    found += [unanswered for gpu in node["gpus"] if not is_unusable(gpu) for unanswered in refused(gpu)]
    if state not in ("not_started", "in_progress", "completed") and not found:
        return []  # unknown, or no fabric
    if state in ("not_started", "in_progress"):
        found.append(fault("fabric", "not_ready", "set up", state.replace("_", " ")))
    return [judged("fabric", "set up", (state or "unknown").replace("_", " "), found)]


def refused(gpu):
    """Find that NVML does not say how the fabric of a GPU is."""
    found = [no_answer("fabric", "set up", gpu_label(gpu), gpu, function) for function in FABRIC_QUESTIONS]
    return [one for one in found if one][:1]


def unhealthy(one):
    """Find fault with the fabric of one GPU, or with GPUs that it keeps apart."""
    code = one["detail"]["health"] if one["code"] == "fabric_unhealthy" else FABRIC_FAULTS[one["code"]]
    return fault("fabric", code, "healthy, in one partition", describe(one), one["subject"])
