# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check a declaration of GPU settings, normalize it, and match it with the GPUs of the node. Pure."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from ..machine.problems import problem
from ..machine.sysfs import normalise_address
from .describe import describe

SWITCHES = ("ecc", "mig_mode", "persistence_mode")
# Exclusive-thread is left out: CUDA 8 removed it.
COMPUTE_MODES = ("default", "exclusive_process", "prohibited")
# Modes come first, as activating one may reset the GPU; persistence before what only lasts while the GPU is initialised.
SETTINGS = SWITCHES + ("compute_mode", "power_limit_watts", "application_clocks", "locked_clocks")
INDEX = re.compile(r"^[0-9]+\Z")
ADDRESS = re.compile(r"^([0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$", re.IGNORECASE)


class DeclarationError(ValueError):
    """An invalid declaration. ``problem``: its record, which the text describes."""

    def __init__(self, code, subject=None, **detail):
        self.problem = problem(code, subject, **detail)
        super(DeclarationError, self).__init__(describe(self.problem))


def parse(entries):
    """Return [{``gpus``: None or [text], ``settings``: {name: value}}] of a list of declarations.

    Absent and null are the same. Watts are numbers. Clocks are in MHz: application_clocks {memory, graphics},
    locked_clocks {graphics: [min, max], memory: [min, max]} with one or both. ``default`` stands for the GPU's own
    power limit, or clocks. Raise DeclarationError for an invalid one.
    """
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise DeclarationError("not_a_list", value=entries)
    return [_parse_entry(entry) for entry in entries]


def _parse_entry(entry):
    unknown = sorted(str(name) for name in set(entry) - set(SETTINGS) - {"gpus"})
    if unknown:
        raise DeclarationError("unknown_setting", ", ".join(unknown), settings=", ".join(SETTINGS))
    gpus = entry.get("gpus")
    if gpus is not None and not isinstance(gpus, list):
        gpus = [gpus]
    settings = {}
    for name in SETTINGS:
        if entry.get(name) is not None:
            settings[name] = PARSERS[name](name, entry[name])
    return {"gpus": None if gpus is None else [str(selector) for selector in gpus], "settings": settings}


def _parse_switch(name, value):
    words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
    if isinstance(value, bool):
        return value
    if str(value).lower() in words:
        return words[str(value).lower()]
    raise DeclarationError("not_a_switch", name, value=value)


def _parse_compute_mode(name, value):
    if value not in COMPUTE_MODES:
        raise DeclarationError("not_a_compute_mode", name, value=value, modes=", ".join(COMPUTE_MODES))
    return value


def _parse_power(name, value):
    if value == "default":
        return value
    try:
        watts = float(value)
    except (OverflowError, TypeError, ValueError):
        watts = 0
    if isinstance(value, bool) or not 0 < watts < float("inf"):
        raise DeclarationError("not_watts", name, value=value)
    return int(watts) if watts == int(watts) else watts


def _parse_application_clocks(name, value):
    if value == "default":
        return value
    if not isinstance(value, dict) or set(value) != {"memory", "graphics"}:
        raise DeclarationError("not_a_clock_pair", name, value=value)
    return {domain: _megahertz(name, clock) for domain, clock in value.items()}


def _parse_locked_clocks(name, value):
    if value == "default":
        return value
    if not isinstance(value, dict) or not value or set(value) - {"memory", "graphics"}:
        raise DeclarationError("not_clock_domains", name, value=value)
    locked = {domain: _parse_range("%s.%s" % (name, domain), limits) for domain, limits in value.items() if limits}
    return locked or "default"


def _parse_range(name, limits):
    if not isinstance(limits, dict):
        limits = {"min": limits, "max": limits}
    if set(limits) != {"min", "max"}:
        raise DeclarationError("not_a_clock_range", name, value=limits)
    low, high = _megahertz(name, limits["min"]), _megahertz(name, limits["max"])
    if low > high:
        raise DeclarationError("inverted_range", name, low=low, high=high)
    return [low, high]


def _megahertz(name, value):
    try:
        clock = 0 if isinstance(value, bool) else int(value)
    except (OverflowError, TypeError, ValueError):
        clock = 0
    if clock <= 0:
        raise DeclarationError("not_megahertz", name, value=value)
    return clock


PARSERS = {
    "ecc": _parse_switch,
    "mig_mode": _parse_switch,
    "persistence_mode": _parse_switch,
    "compute_mode": _parse_compute_mode,
    "power_limit_watts": _parse_power,
    "application_clocks": _parse_application_clocks,
    "locked_clocks": _parse_locked_clocks,
}


def matches(selector, gpu):
    """Return True if a GPU is meant by its index, UUID, PCI address or words of its model's name, in their order.

    "A100" is an A100-SXM4-80GB, and "A10" is not.
    """
    if INDEX.match(selector):
        return str(gpu["index"]) == (selector.lstrip("0") or "0")
    if selector.startswith("GPU-"):
        return gpu.get("uuid") == selector
    if ADDRESS.match(selector):
        return gpu.get("pci_bus_id") == normalise_address(selector)
    wanted, words = _words(selector), _words(gpu.get("name") or "")
    return bool(wanted) and any(words[start : start + len(wanted)] == wanted for start in range(len(words)))


def _words(name):
    return re.findall(r"[a-z0-9]+", name.lower())


def select(entries, gpus):
    """Return ({index: settings}, [problem], [warning]) of parsed entries; an entry has precedence over those before it.

    A model that no GPU of this node has is only warned about: a declaration may be for nodes of several kinds.
    """
    chosen, problems, warnings = {}, [], []
    for entry in entries:
        for selector in entry["gpus"] or ():
            if not any(matches(selector, gpu) for gpu in gpus):
                exact = INDEX.match(selector) or selector.startswith("GPU-") or ADDRESS.match(selector)
                missing = problem("gpu_not_found", selector, present=_present(gpus, selector))
                (problems if exact else warnings).append(missing)
        for gpu in gpus:
            if entry["gpus"] is None or any(matches(selector, gpu) for selector in entry["gpus"]):
                chosen.setdefault(gpu["index"], {}).update(entry["settings"])
    return chosen, problems, warnings


def _present(gpus, selector):
    """Return the GPUs in the terms of the selector."""
    if INDEX.match(selector):
        return "GPU %s" % ", ".join(str(gpu["index"]) for gpu in gpus) if gpus else "none"
    key = "uuid" if selector.startswith("GPU-") else "pci_bus_id" if ADDRESS.match(selector) else "name"
    return ", ".join(sorted({gpu[key] for gpu in gpus if gpu.get(key)})) or "none that answers"
