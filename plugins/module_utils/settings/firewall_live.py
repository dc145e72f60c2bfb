# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The running rules: how they differ from the files, and how files are brought into use."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from ..host import firewalld, nft, ufw
from ..machine.problems import problem

UNIT = "allreduce-firewall.service"
UNIT_FILE = "/etc/systemd/system/" + UNIT
LOADED = "loaded"
# Whose rules are not loaded by nft.
OTHERS = ("firewalld", "ufw")


def steps(files, owner, facts, pending=False):
    """Return the steps to the running rules that no step to a file brings about. files: {path: text} as they will be; facts: live().

    pending: a run before was killed, so that units and the files of those in charge may not have been read.
    """
    found = [
        _rules(one, None, LOADED)
        for one in (UNIT_FILE,) + OTHERS
        if pending and (one == UNIT_FILE or facts[one]["active"])
    ]
    wanted = nft.digest_of(files.get(nft.FILE))
    if facts["nft"]["digest"] != wanted:
        found.append(_rules("nftables", facts["nft"]["digest"], wanted))
    if owner == "nftables":
        doors = [one for one in facts["closed"] if one["tool"] == "nft" and not one["door"]]
        found += [_rules("%(family)s %(table)s %(chain)s" % one, None, "door") for one in doors]
    if owner == "ufw" and not (facts["ufw"]["door"] or pending):
        found.append(_rules("ufw", None, LOADED))
    if owner == "firewalld" and facts["firewalld"]["peers"] != peers_of(files) and not pending:
        found.append(_rules("firewalld", None, LOADED))
    return found


def _rules(subject, before, after):
    return {"kind": "rules", "subject": subject, "before": before, "after": after}


def peers_of(files):
    """Return the entries of the sets in firewalld's files."""
    texts = [files.get(firewalld.SET_FILE % version) or "" for version in (4, 6)]
    return sorted(re.findall("<entry>([^<]+)</entry>", "".join(texts)))


def live(tree, output):
    """Return {nft, closed, ufw, firewalld} as they run now. output: of a program, None where it cannot run."""
    ruleset = nft.objects(output(nft.LIST))
    return {
        "nft": nft.loaded(ruleset),
        "closed": nft.closed(ruleset),
        "ufw": ufw.read(tree, output),
        "firewalld": firewalld.read(output),
    }


def load(machine, subjects):
    """Bring what changed into use; return [problem]. subjects: paths of files, and what steps() names."""
    tree, problems = machine.tree, []
    units = any(one.startswith("/etc/systemd/system/") for one in subjects)
    if units and not tree.exists(UNIT_FILE):
        machine.start(["systemctl", "stop", UNIT])  # which may never have been started
    if units:
        problems += started(machine, ["systemctl", "daemon-reload"])
    if any(one == nft.FILE or not one.startswith("/") and one not in OTHERS for one in subjects):
        problems += load_table(machine)
    if any(one.startswith("/etc/firewalld/") or one == "firewalld" for one in subjects):
        if machine.output([firewalld.CLIENT, "--state"]) is not None:
            problems += started(machine, [firewalld.CLIENT, "--reload"])
    if any(one in ufw.CHAINS or one == "ufw" for one in subjects) and ufw.read(tree, machine.output)["active"]:
        problems += started(machine, ["ufw", "reload"])
    if units and tree.exists(UNIT_FILE) and not problems:
        problems += started(machine, ["systemctl", "start", UNIT])
    return problems


def load_table(machine):
    """Load our table and its doors as the file says, or take both away where there is none; return [problem]."""
    if machine.tree.exists(nft.FILE):
        problems = started(machine, ["nft", "-f", machine.tree.path(nft.FILE)])
        text = nft.door_commands(nft.objects(machine.output(nft.LIST)))
    else:
        problems, text = [], nft.removal(nft.objects(machine.output(nft.LIST)))
    return problems + (started(machine, ["nft", "-f", "-"], text) if text and not problems else [])


def started(machine, command, data=None):
    """Run a program; return [problem] where it fails."""
    status, output = machine.start(command, data)
    if status == 0:
        return []
    return [problem("command_failed", " ".join(command), status=status, reason=output.strip())]
