# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Is the driver of one piece? Loaded module, installed module, library, fabric manager, toolkit, the next kernel."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from ..host.services import FABRIC_MANAGER
from .findings import finding, judged

CATEGORY = "coherence"


def judge_coherence(node, state, next_module):
    """Judgements; ``state`` is a gpu_node_state, ``next_module`` what health_reading.read_next_module gave."""
    found = next_kernel(state, next_module)
    if not node["gpus"]:
        return found
    found += module_loaded(node["driver"], state)
    if node["driver"]["loaded_version"]:
        found += [driver_library(node["driver"])] + nvml(node["driver"]) + fabric_manager(node, state)
    return found + toolkit(node["driver"], state)


def module_loaded(driver, state):
    """A container has its host's module, so that there none need be installed."""
    loaded, installed = driver["loaded_version"], (state.get("driver") or {}).get("installed")
    expected, problem = installed or "an installed driver", None
    if loaded and installed is None and state.get("container"):
        return []
    if loaded is None:
        severity = "reboot_required" if installed else "failed"
        action = "reboot to load %s" % installed if installed else "install the driver"
        problem = finding("module_loaded", expected, "not loaded", severity, action)
    elif installed is None:
        action = "no installed module was found beside the loaded %s; reinstall the driver" % loaded
        problem = finding("module_loaded", "the installed version", None, "unknown", action)
    elif installed != loaded:
        problem = finding("module_loaded", installed, loaded, "reboot_required", "reboot to load %s" % installed)
    return [judged("module_loaded", CATEGORY, expected, loaded, [problem])]


def driver_library(driver):
    loaded, library, problem = driver["loaded_version"], driver["library_version"], None
    if library is None:
        problem = finding("driver_library", loaded, "missing", "failed", "install the driver's libraries")
    elif library != loaded:
        action = "reboot, kernel module and library differ"
        problem = finding("driver_library", loaded, library, "reboot_required", action)
    return judged("driver_library", CATEGORY, loaded, library, [problem])


def nvml(driver):
    """With module and library of one version NVML works; where it cannot be asked, much stays unknown."""
    if driver["library_version"] != driver["loaded_version"]:
        return []
    problem = None
    if driver["nvml_state"] == "pynvml_missing":
        problem = finding("nvml", "an answer", None, "unknown", driver["nvml"])
    elif driver["nvml_state"] != "ok":
        problem = finding("nvml", "an answer", driver["nvml"], "failed", "reboot; then look into the kernel log")
    return [judged("nvml", CATEGORY, "an answer", "an answer", [problem])]


def fabric_manager(node, state):
    """Of exactly the driver's version, running, and done with the fabric; CUDA fails with error 802 without it."""
    needed, loaded = node["fabric"]["manager_needed"], node["driver"]["loaded_version"]
    if needed is False or (needed is None and node["driver"]["nvml_state"] != "ok"):
        return []
    installed = (state.get("driver") or {}).get("installed")
    if installed not in (None, loaded) and manager_version(state, installed) is None:
        return []  # it waits for the same reboot as its driver
    expected = "%s, running" % loaded
    found = [problem for problem in (manager_version(state, loaded), manager_service(state)) if problem]
    if node["fabric"]["state"] in ("not_started", "in_progress"):
        action = "start the fabric manager, then look into its log"
        text = "the fabric is %s" % node["fabric"]["state"].replace("_", " ")
        found.append(finding("fabric_manager", "the fabric set up", text, "failed", action))
    return [judged("fabric_manager", CATEGORY, expected, expected, found)]


def manager_version(state, loaded):
    packages = state.get("packages")
    if packages is None:
        return finding("fabric_manager", loaded, None, "unknown", "the installed packages could not be read")
    pattern, action = r"nvidia-fabric-?manager(-\d+)?$", "install the fabric manager of version %s" % loaded
    versions = [version for name, version in sorted(packages.items()) if re.match(pattern, name)]
    if not versions:
        return finding("fabric_manager", loaded, "not installed", "failed", action)
    wrong = [version for version in versions if not re.match(r"(\d+:)?%s(\D|$)" % re.escape(loaded), version)]
    return finding("fabric_manager", loaded, ", ".join(wrong), "failed", action) if wrong else None


def manager_service(state):
    service = (state.get("services") or {}).get(FABRIC_MANAGER) or {}
    if service.get("active") is None:
        return finding("fabric_manager", "running", None, "unknown", "systemd could not be asked")
    if service["active"] and service["enabled"]:
        return None
    words = " and ".join(word if service[word] else "not %s" % word for word in ("enabled", "active"))
    severity = "degraded" if service["active"] else "failed"
    action = "enable and start %s" % FABRIC_MANAGER
    return finding("fabric_manager", "enabled and active", words, severity, action)


def toolkit(driver, state):
    """A toolkit of a newer major version than the driver's CUDA does not run."""
    names = [re.match(r"cuda-toolkit-(\d+)-(\d+)$", name) for name in state.get("packages") or {}]
    versions = sorted((int(found.group(1)), int(found.group(2))) for found in names if found)
    if not versions:
        return []
    cuda, newest, problem = driver["cuda_driver_version"], "CUDA %d.%d" % versions[-1], None
    expected = "at most what the driver runs, CUDA %s" % (cuda or "of unknown version")
    if cuda is None:
        problem = finding("cuda_toolkit", expected, None, "unknown", "the driver does not tell its CUDA version")
    elif versions[-1][0] > int(cuda.split(".")[0]):
        action = "install a newer driver or an older toolkit"
        problem = finding("cuda_toolkit", expected, newest, "degraded", action)
    return [judged("cuda_toolkit", CATEGORY, expected, newest, [problem])]


def next_kernel(state, next_module):
    """The newest installed kernel must have the module too, or the next boot has no GPU."""
    kernel = state.get("kernel") or {}
    newest = kernel.get("newest")
    if not newest or not (state.get("driver") or {}).get("installed"):
        return []
    built = [entry["kernel"] for entry in state.get("dkms") or [] if entry["module"].startswith("nvidia")
             and entry["status"] == "installed"]  # fmt: skip
    known = next_module if next_module is not None else True if newest in built else False if built else None
    expected, problem = "a module for %s" % newest, None
    if known is False:
        action = "install the headers of %s, or the driver's module package for it" % newest
        problem = finding("next_kernel", expected, "none", "degraded", action)
    elif known is None:
        problem = finding("next_kernel", expected, None, "unknown", "run depmod for %s" % newest)
    return [judged("next_kernel", CATEGORY, expected, expected, [problem])]
