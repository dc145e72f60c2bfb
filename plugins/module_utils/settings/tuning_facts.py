# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gather the tuning of a node, as ``ansible_facts.gpu_tuning``: running values, those of the next boot, and the original ones."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from ..host import interrupts, kernel_arguments, limits, logind, services, sysctl, tuned
from . import tuning_record

GOVERNOR = "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"
IDLE_LATENCY = "/sys/devices/system/cpu/cpu[0-9]*/power/pm_qos_resume_latency_us"
HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
SWITCHES = {"governor": GOVERNOR, "idle_latency": IDLE_LATENCY, "transparent_hugepage": HUGE_PAGES}
IDLE_DRIVER = "/sys/devices/system/cpu/cpuidle/current_driver"


def read_tuning(tree, keys, unit_names=(), interfaces=(), run=None, user="root", ask=None):
    """Return the whole fact. keys: normalised sysctls.

    ask, run: see ansible_module.program_output; ask for what is only asked, run for what is tried; None to start nothing.
    """
    container = services.is_container(tree)
    record = tuning_record.load(tree)
    memory = tree.text("/proc/meminfo")
    return {
        "container": container,
        "recorded": record is not None,
        "sysctl": {key: _switch(tree, sysctl.path_of(key), record) for key in keys},
        "sysctl_lines": sysctl.read_lines(tree, set(keys)),
        "switches": {name: _switch(tree, pattern, record) for name, pattern in SWITCHES.items() if _works(tree, name)},
        "tuned": tuned.read(tree, run),
        "logind": logind.read(tree, ask),
        "arguments": kernel_arguments.read(tree, container),
        "interfaces": {name: interrupts.read(tree, name) for name in interfaces},
        "limits": {
            "ceiling": limits.read_ceiling(tree),
            "services": limits.read_services(tree, unit_names),
            "fresh": limits.read_fresh(run, user) if run else None,
        },
        "numa_nodes": len([name for name in tree.names("/sys/devices/system/node") if re.match(r"node\d+$", name)]),
        "shared_subnets": shared_subnets(tree.text("/proc/net/route")),
        "neighbours": max(len((tree.text("/proc/net/arp") or "").splitlines()) - 1, 0),
        "memory_kib": _amount(memory, "MemTotal"),
        "huge_page_kib": _amount(memory, "Hugepagesize"),
    }


def _switch(tree, pattern, record):
    """Return {running, original}: original is what was recorded before the first change, else what runs."""
    running = sysctl.read_switch(tree, pattern)
    known = tuning_record.values_of(record, sysctl.expand(tree, pattern)) if record else None
    return {"running": running, "original": known or running}


def _works(tree, name):
    """Return True if a switch has an effect: the kernel offers latency limits also where nothing heeds them."""
    driver = sysctl.selected(tree.text(IDLE_DRIVER))
    return name != "idle_latency" or driver not in (None, "none")


def shared_subnets(routes):
    """Return [{subnet, interfaces}] of /proc/net/route: those that several have an address in, as the kernel writes them."""
    found = {}
    for line in (routes or "").splitlines()[1:]:
        columns = line.split()
        if len(columns) > 7 and columns[2] == "00000000" and columns[7] not in ("00000000", "FFFFFFFF"):
            found.setdefault(columns[1] + "/" + columns[7], set()).add(columns[0])
    return [
        {"subnet": subnet, "interfaces": sorted(names)} for subnet, names in sorted(found.items()) if len(names) > 1
    ]


def _amount(memory, name):
    found = re.search(r"(?m)^%s:\s+(\d+) kB" % name, memory or "")
    return int(found.group(1)) if found else None
