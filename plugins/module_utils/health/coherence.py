# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge whether the loaded driver, its library and the fabric work together, as the kernel and NVML tell.

What the plan wants installed is another question, which only drift answers (plugin_utils/drift).
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..machine.describe import describe
from ..machine.fabric_health import CODES
from .findings import finding, judged

CATEGORY = "coherence"


def judge_coherence(node):
    """Return judgements of a gpu_node with GPUs; none of one without."""
    if not node["gpus"]:
        return []
    found = [module_loaded(node["driver"])]
    if node["driver"]["loaded_version"]:
        found += [driver_library(node["driver"])] + nvml(node["driver"]) + fabric(node)
    return found


def module_loaded(driver):
    """Judge whether there is a driver at all."""
    loaded, problem = driver["loaded_version"], None
    if loaded is None:
        action = "load the driver; where that fails, reboot, or install it"
        problem = finding("module_loaded", "a loaded driver", "not loaded", "failed", action)
    return judged("module_loaded", CATEGORY, "a loaded driver", loaded, [problem])


def driver_library(driver):
    """Judge whether the NVML library has the loaded module's version; they differ between an upgrade and a reboot."""
    loaded, library, problem = driver["loaded_version"], driver["library_version"], None
    if library is None:
        problem = finding("driver_library", loaded, "missing", "failed", "install the driver's libraries")
    elif library != loaded:
        action = "reboot, kernel module and library differ"
        problem = finding("driver_library", loaded, library, "reboot_required", action)
    return judged("driver_library", CATEGORY, loaded, library, [problem])


def nvml(driver):
    """Judge whether NVML answers; with module and library of different versions it cannot."""
    if driver["library_version"] != driver["loaded_version"]:
        return []
    problem = None
    if driver["nvml_state"] == "pynvml_missing":
        problem = finding("nvml", "an answer", None, "unknown", driver["nvml"])
    elif driver["nvml_state"] != "ok":
        problem = finding("nvml", "an answer", driver["nvml"], "failed", "reboot; then look into the kernel log")
    return [judged("nvml", CATEGORY, "an answer", "an answer", [problem])]


def fabric(node):
    """Judge whether the fabric is set up and well as its GPUs see it; CUDA fails with error 802 until it is.

    Its manager's service is another question, and not on this node where the fabric spans a rack.
    """
    state = node["fabric"]["state"]
    found = [unhealthy(one) for one in node["findings"] if one["code"] in ("fabric_unhealthy", "fabric_split")]
    if state not in ("not_started", "in_progress", "completed") and not found:
        return []  # unknown, or no fabric
    if state in ("not_started", "in_progress"):
        action = "start the fabric manager, then look into its log"
        found.append(finding("fabric", "set up", state.replace("_", " "), "failed", action))
    return [judged("fabric", CATEGORY, "set up", (state or "unknown").replace("_", " "), found)]


def unhealthy(one):
    """Find fault with the fabric of one GPU, or with GPUs that it keeps apart."""
    action = "look into the fabric manager's log; then reset the GPU"
    severity = CODES[one["detail"]["health"]][0] if one["code"] == "fabric_unhealthy" else "degraded"
    return finding("fabric", "healthy, in one partition", describe(one), severity, action, one["subject"])
