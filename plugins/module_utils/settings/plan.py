# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what GPUs are set to and what is declared to the changes, each GPU's own. Pure.

A reading: ``index``, ``uuid``, ``name``, ``pci_bus_id``, ``persistence_mode``, ``compute_mode``, ``ecc`` and ``mig_mode``
({current, pending}), ``power_limit_watts`` ({current, default, min, max}), ``application_clocks`` ({current, default} of
{memory, graphics}), ``clocks`` ({memory MHz: [graphics MHz]} that the GPU supports) and ``locked_clocks`` (what was set
last: {graphics, memory} of [min, max] or default). None, or nothing in the latter two, is what is not known or what the
GPU does not have. A GPU that does not answer has ``index`` and ``problem`` alone.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..machine.problems import problem
from .declaration import SETTINGS, SWITCHES, select

COMPUTE_MODES = {"default": 0, "prohibited": 2, "exclusive_process": 3}
# Lost with the last program that uses a GPU: docs.nvidia.com/deploy/driver-persistence/data-persistence.html
FORGOTTEN = ("compute_mode", "power_limit_watts", "application_clocks", "locked_clocks")
WAITING = ("ecc", "mig_mode")


class Refusal(ValueError):
    """This GPU cannot be set so: the ``code`` and ``detail`` of a problem."""

    def __init__(self, code, **detail):
        super(Refusal, self).__init__(code)
        self.code, self.detail = code, detail


def make_plan(entries, readings):
    """Return {``gpus``: [{reading, wanted, changes}], ``problems`` and ``warnings``: [{code, subject, detail}]}.

    ``changes`` is [{setting, before, after, value}] in the order of their application. A setting that a GPU refuses is
    among the problems, and not among its changes.
    """
    chosen, problems, warnings = select(entries, readings)
    if not readings:
        problems.append(problem("no_gpu"))
    gpus = []
    for reading in readings:
        wanted = chosen.get(reading["index"], {})
        if wanted and "problem" in reading:
            problems.append(gpu_problem("gpu_not_opened", reading, reason=reading["problem"]))
        elif wanted:
            changes, refusals = plan_gpu(reading, wanted)
            problems += refusals
            gpus.append({"reading": reading, "wanted": wanted, "changes": changes})
    return {"gpus": gpus, "problems": problems, "warnings": warnings}


def gpu_problem(code, reading, **detail):
    """Return a problem of one GPU."""
    known = {key: reading[key] for key in ("index", "name") if key in reading}
    return problem(code, "GPU%d" % reading["index"], **dict(known, **detail))


def plan_gpu(reading, wanted):
    """Return (changes, refusals) of one GPU."""
    changes, refusals = [], []
    for setting in SETTINGS:
        if setting in wanted:
            try:
                before, after = PLANNERS[setting](reading, setting, wanted[setting])
            except Refusal as refusal:
                refusals.append(gpu_problem(refusal.code, reading, **dict(refusal.detail, setting=setting)))
                continue
            if before != after:
                changes.append({"setting": setting, "before": before, "after": after, "value": wanted[setting]})
    return changes, refusals


def _plan_mode(reading, setting, value):
    before = reading[setting]
    if before is None:
        raise Refusal("not_supported")
    return before, value


def _plan_pending(reading, setting, value):
    """Return (before, wanted) of a mode that a reset brings into use: what waits for one counts as set."""
    before = reading[setting]["pending"]
    if before is None:
        raise Refusal("not_supported")
    return before, value


def _plan_power(reading, setting, value):
    limits = reading[setting]
    after = limits["default"] if value == "default" else value
    if None in (limits["current"], after):
        raise Refusal("not_supported")
    low, high = limits["min"], limits["max"]
    if None not in (low, high) and not low <= after <= high:
        raise Refusal("out_of_range", value=after, low=low, high=high)
    return limits["current"], after


def _plan_application_clocks(reading, setting, value):
    clocks = reading[setting]
    after = clocks["default"] if value == "default" else value
    if None in (clocks["current"], after):
        raise Refusal("no_application_clocks")
    supported = reading["clocks"]
    if value != "default" and supported:
        if after["memory"] not in supported:
            raise clock_refusal("memory", after["memory"], supported)
        if after["graphics"] not in supported[after["memory"]]:
            raise clock_refusal("graphics", after["graphics"], supported[after["memory"]])
    return clocks["current"], after


def _plan_locked_clocks(reading, setting, value):
    """NVML does not tell what clocks are locked to; where nothing is remembered, they are locked again."""
    supported = reading["clocks"]
    if supported and value != "default":
        domains = {"memory": supported, "graphics": [clock for clocks in supported.values() for clock in clocks]}
        for domain, limits in sorted(value.items()):
            if limits[0] < min(domains[domain]) or limits[1] > max(domains[domain]):
                raise clock_refusal(domain, limits, domains[domain])
    after = {"graphics": value, "memory": value} if value == "default" else value
    return {domain: reading[setting].get(domain) for domain in after}, after


def clock_refusal(domain, value, clocks):
    """Return the refusal of a clock that the GPU does not support. value: MHz or [min, max] of them."""
    return Refusal("clock_not_supported", domain=domain, value=value, clocks=sorted(set(clocks)))


PLANNERS = {
    "ecc": _plan_pending,
    "mig_mode": _plan_pending,
    "persistence_mode": _plan_mode,
    "compute_mode": _plan_mode,
    "power_limit_watts": _plan_power,
    "application_clocks": _plan_application_clocks,
    "locked_clocks": _plan_locked_clocks,
}


def calls(change):
    """Return [(NVML function without its prefix, arguments after the handle)] that make a change of the plan."""
    setting, value = change["setting"], change["value"]
    if setting in SWITCHES:
        function = {"ecc": "DeviceSetEccMode", "mig_mode": "DeviceSetMigMode"}
        return [(function.get(setting, "DeviceSetPersistenceMode"), (int(value),))]
    if setting == "compute_mode":
        return [("DeviceSetComputeMode", (COMPUTE_MODES[value],))]
    if setting == "power_limit_watts":
        return [("DeviceSetPowerManagementLimit", (int(round(change["after"] * 1000)),))]
    if setting == "application_clocks":
        if value == "default":
            return [("DeviceResetApplicationsClocks", ())]
        return [("DeviceSetApplicationsClocks", (value["memory"], value["graphics"]))]
    return [_lock(domain, value) for domain in (("graphics", "memory") if value == "default" else sorted(value))]


def _lock(domain, value):
    name = {"graphics": "GpuLockedClocks", "memory": "MemoryLockedClocks"}[domain]
    return ("DeviceReset" + name, ()) if value == "default" else ("DeviceSet" + name, tuple(value[domain]))


def resets(plan, after=None):
    """Return [{index, name, setting, wanted}]: what waits for a reset of a GPU.

    ``after``: {index: reading} once all is applied. Without it, ECC is predicted, which always waits. MIG mode is not:
    an idle GPU activates it at once.
    """
    waiting = []
    for gpu in plan["gpus"]:
        reading = gpu["reading"] if after is None else after.get(gpu["reading"]["index"], gpu["reading"])
        for setting in WAITING:
            wanted, modes = gpu["wanted"].get(setting), reading[setting]
            if wanted is None or modes["current"] in (None, wanted):
                continue
            if modes["pending"] == wanted or (after is None and setting == "ecc"):
                waiting.append(
                    {"index": reading["index"], "name": reading["name"], "setting": setting, "wanted": wanted}
                )
    return waiting


def forgetful(plan):
    """Return [{index, name, settings}]: what GPUs will lose, as nothing keeps them initialised."""
    found = []
    for gpu in plan["gpus"]:
        lost = [setting for setting in FORGOTTEN if gpu["wanted"].get(setting) not in (None, "default")]
        if lost and gpu["wanted"].get("persistence_mode", gpu["reading"]["persistence_mode"]) is False:
            found.append({"index": gpu["reading"]["index"], "name": gpu["reading"]["name"], "settings": lost})
    return found


def diffs(plan):
    """Return the differences that Ansible shows with ``--diff``: one entry for each GPU that changes."""
    shown = []
    for gpu in plan["gpus"]:
        if gpu["changes"]:
            header = "GPU %(index)d %(name)s %(uuid)s" % gpu["reading"]
            shown.append(
                {
                    "before_header": header,
                    "after_header": header,
                    "before": "".join("%s: %s\n" % (c["setting"], _text(c["before"])) for c in gpu["changes"]),
                    "after": "".join("%s: %s\n" % (c["setting"], _text(c["after"])) for c in gpu["changes"]),
                }
            )
    return shown


def _text(value):
    if isinstance(value, dict):
        return ", ".join("%s %s" % (key, _text(value[key])) for key in sorted(value))
    if isinstance(value, list):
        return "-".join(map(str, value))
    return "unknown" if value is None else str(value).lower()
