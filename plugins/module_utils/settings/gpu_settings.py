# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the GPUs' settings through an open NVML, plan, and apply. Also used on the node itself, without Ansible."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import os

from ..machine import describe as machine
from ..machine import nvml_gpus
from ..machine.nvml import import_pynvml, library_version, open_nvml
from . import plan as settings_plan
from .describe import describe, describe_forgetful, describe_resets

CLOCKS = {"graphics": 0, "memory": 2}  # NVML_CLOCK_GRAPHICS, NVML_CLOCK_MEM
# A mark of the loaded module: the kernel gives its directory another inode when it is loaded again.
DRIVER = "/sys/module/nvidia"
LOCKED_CLOCKS = "/run/allreduce/locked_clocks.json"


class NoDriver(Exception):
    """There is no NVML to ask. ``code``: why (see nvml.open_nvml); ``installed``: a boot or modprobe will do."""

    def __init__(self, unavailable, installed):
        advice = "install and load the driver, as role allreduce.gpu.nvidia_driver does"
        reason = machine.describe(unavailable).rstrip(".")
        reasons = [reason] if unavailable["code"] == "pynvml_missing" else [reason, advice]
        super(NoDriver, self).__init__("The GPU settings cannot be applied: %s." % "; ".join(reasons))
        self.code, self.installed = unavailable["code"], installed


class LockedClocks:
    """The values that clocks were locked to, as NVML does not tell. Forgotten when the driver forgets them: when it is loaded again."""

    def __init__(self, path=LOCKED_CLOCKS, driver=DRIVER):
        self.path = path
        try:
            self.driver = os.stat(driver).st_ino
        except OSError:
            self.driver = None
        self.gpus = self._load()

    def _load(self):
        try:
            with open(self.path) as stream:
                known = json.load(stream)
            return known["gpus"] if known["driver"] == self.driver else {}
        except (EnvironmentError, ValueError, KeyError, TypeError):
            return {}

    def remember(self, uuid, clocks):
        """Keep the locked clocks of a GPU: {graphics, memory}, one or both, of [min, max] or default."""
        self.gpus.setdefault(uuid, {}).update(clocks)
        if not os.path.isdir(os.path.dirname(self.path)):
            os.makedirs(os.path.dirname(self.path), 0o755)
        new = "%s.%d" % (self.path, os.getpid())
        with open(new, "w") as stream:
            json.dump({"driver": self.driver, "gpus": self.gpus}, stream, sort_keys=True)
        os.rename(new, self.path)


def read(nvml, locked, clocks):
    """Return ([reading], {index: handle}); readings as in settings_plan.

    The supported clocks are read where ``clocks`` is true.
    """
    readings, handles = [], {}
    for handle, gpu in nvml_gpus.read_gpus(nvml):
        if handle is None:
            readings.append(gpu)
            continue
        handles[gpu["index"]] = handle
        kept = ("index", "uuid", "name", "pci_bus_id", "persistence_mode", "compute_mode", "ecc", "power_limit_watts")
        reading = {key: gpu[key] for key in kept}
        reading.update(mig_mode=gpu["mig"], locked_clocks=locked.gpus.get(gpu["uuid"], {}))
        reading["application_clocks"] = {
            "current": _clocks(nvml, "DeviceGetApplicationsClock", handle),
            "default": _clocks(nvml, "DeviceGetDefaultApplicationsClock", handle),
        }
        reading["clocks"] = read_supported_clocks(nvml, handle) if clocks else {}
        readings.append(reading)
    return readings, handles


def _clocks(nvml, function, handle):
    clocks = {name: nvml.call(function, handle, number) for name, number in CLOCKS.items()}
    return None if None in clocks.values() else clocks


def read_supported_clocks(nvml, handle):
    """Return {memory MHz: [graphics MHz]}; {} where NVML does not say."""
    clocks = {
        memory: nvml.call("DeviceGetSupportedGraphicsClocks", handle, memory)
        for memory in nvml.call("DeviceGetSupportedMemoryClocks", handle) or ()
    }
    return {memory: graphics for memory, graphics in clocks.items() if graphics}


def apply_changes(nvml, gpu, handle, locked, settings):
    """Apply those changes of one GPU of the plan whose setting is in ``settings``; [problem] of what failed."""
    failures = []
    for change in gpu["changes"]:
        if change["setting"] in settings:
            errors = [_apply(nvml, handle, *call) for call in settings_plan.calls(change)]
            failed = next((error for error in errors if error), None)
            if failed:
                detail = {"setting": change["setting"], "cause": failed["code"], "reason": failed["reason"].rstrip(".")}
                failures.append(settings_plan.gpu_problem("not_changed", gpu["reading"], **detail))
            elif change["setting"] == "locked_clocks":
                locked.remember(gpu["reading"]["uuid"], change["after"])
    return failures


def _apply(nvml, handle, function, arguments):
    """None, or why NVML did not do it (see Nvml.attempt). A lock that a GPU cannot have needs no release."""
    dummy_result, failed = nvml.attempt(function, handle, *arguments)
    needless = failed and failed["code"] == "not_supported" and function.startswith("DeviceReset")
    return None if needless else failed


def apply_plan(nvml, entries, plan, handles, locked, look):
    """Apply the plan: modes first, then what is left, as activating MIG mode resets the GPU. [problem] of what failed."""
    failures = []
    for gpu in plan["gpus"]:
        failures += apply_changes(nvml, gpu, handles[gpu["reading"]["index"]], locked, settings_plan.WAITING)
    if any(change["setting"] == "mig_mode" for gpu in plan["gpus"] for change in gpu["changes"]):
        readings, handles = look()
        plan = settings_plan.make_plan(entries, readings)
    rest = [setting for setting in settings_plan.SETTINGS if setting not in settings_plan.WAITING]
    for gpu in plan["gpus"]:
        failures += apply_changes(nvml, gpu, handles[gpu["reading"]["index"]], locked, rest)
    return failures


def settle(entries, library, locked, check=False, partly=False):
    """Bring the node's GPUs to the parsed declaration; the answer of the module. NoDriver where NVML cannot be asked.

    What a GPU refuses is among ``problems``, and nothing is changed then, unless ``partly``: then all else is.
    """
    clocks = any({"application_clocks", "locked_clocks"} & set(entry["settings"]) for entry in entries)
    with open_nvml(library) as (nvml, unavailable):
        if nvml is None:
            raise NoDriver(unavailable, library_version(library) is not None and import_pynvml() is not None)

        def look():
            return read(nvml, locked, clocks)

        readings, handles = look()
        plan = settings_plan.make_plan(entries, readings)
        if check or (plan["problems"] and not partly):
            return answer(plan, settings_plan.resets(plan))
        failures = apply_plan(nvml, entries, plan, handles, locked, look)
        after = {reading["index"]: reading for reading in look()[0] if "problem" not in reading}
        return answer(plan, settings_plan.resets(plan, after), failures)


def answer(plan, waiting, failures=()):
    """Return {changed, gpus, reset_required, findings, problems, warnings, diff}; the sentences are made here."""
    findings = plan["problems"] + list(failures)
    warnings = [describe(warning) for warning in plan["warnings"]]
    warnings += describe_resets(waiting) + describe_forgetful(settings_plan.forgetful(plan))
    gpus = []
    for gpu in plan["gpus"]:
        entry = {key: gpu["reading"][key] for key in ("index", "uuid", "name", "pci_bus_id")}
        entry["changes"] = {c["setting"]: {"before": c["before"], "after": c["after"]} for c in gpu["changes"]}
        entry["reset_required"] = [one["setting"] for one in waiting if one["index"] == entry["index"]]
        gpus.append(entry)
    return {
        "changed": any(gpu["changes"] for gpu in plan["gpus"]),
        "gpus": gpus,
        "reset_required": bool(waiting),
        "findings": findings,
        "problems": [describe(finding) for finding in findings],
        "warnings": warnings,
        "diff": settings_plan.diffs(plan),
    }
