# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask ATA drives for their health with smartctl, once an hour: the kernel has no call for it, and an idle disk may have to spin up.

What smartctl says: smartctl(8), EXIT STATUS, and ataprint.cpp of smartmontools, which writes its JSON (since 7.0).
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import os
import subprocess

from ..machine.child import bounded

SMARTCTL = "/usr/sbin/smartctl"
EVERY = 3600  # seconds
# For all drives together, away from what asks the GPUs: a drive that hangs is not taken for a driver that does.
SECONDS = 20
PENDING, UNCORRECTABLE = 197, 198  # attributes, as smartd.conf(5) has them: -C 197 -U 198


def is_due(known, uptime):
    """Return True if drives are asked in this run; ``known``: what the state has of them."""
    at = known.get("at")
    return at is None or not 0 <= uptime - at < EVERY


def read_ata(sys_tree, tree):
    """Return {``tool``: whether smartctl is there, ``drives``: {name: see parse}}."""
    names = [name for name in sys_tree.names("/block") if is_ata(sys_tree, name)]
    program = tree.path(SMARTCTL)
    if not os.access(program, os.X_OK):
        return {"tool": False, "drives": dict.fromkeys(names)}
    said = bounded(lambda say: [say([name, ask(program, name)]) for name in names], SECONDS)[0] if names else []
    answers = dict(said)
    return {"tool": True, "drives": {name: answers.get(name) or refused("no answer") for name in names}}


def is_ata(tree, name):
    """Return True if a disk is behind libata, which calls its vendor so (drivers/ata/libata-scsi.c)."""
    return name.startswith("sd") and tree.text("/block/%s/device/vendor" % name) == "ATA"


def ask(program, name):
    arguments = [program, "--json=c", "--health", "--attributes", "/dev/" + name]
    process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return parse(process.communicate()[0].decode("utf-8", "replace"))


def parse(text):
    """Return {``passed``, ``failing``: names of attributes, ``sectors``, ``refused``: None, or why nothing is known}."""
    try:
        said = json.loads(text)
    except ValueError:
        return refused("no JSON")
    passed = (said.get("smart_status") or {}).get("passed")
    if passed is None:
        messages = (said.get("smartctl") or {}).get("messages") or [{}]
        return refused(messages[0].get("string") or "no status")
    table = (said.get("ata_smart_attributes") or {}).get("table") or []
    counts = [(row.get("raw") or {}).get("value") or 0 for row in table if row.get("id") in (PENDING, UNCORRECTABLE)]
    failing = [row.get("name") for row in table if row.get("when_failed") == "now"]
    return {"passed": passed, "failing": failing, "sectors": max(counts) if counts else 0, "refused": None}


def refused(why):
    return {"passed": None, "failing": [], "sectors": 0, "refused": why}
