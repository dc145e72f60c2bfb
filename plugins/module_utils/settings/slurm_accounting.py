# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""QoS, accounts and users of a Slurm cluster as declared: read with sacctmgr, plan, apply, and read again.

A record says which names we made: only these go when they are no longer declared. It stays as long as the accounting database.

sacctmgr(1) of slurm-22.05 and slurm-24.11: WOPLimits shows of an association what was set on itself, not what the account above gives it;
--immediate asks for no confirmation. Not all that changes nothing is an error for it, so that what was done is read again. Which GPUs
there are to limit (show tres) it knows once slurmctld has registered. Seen with 22.05.8.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import os

from ..machine.files import make_directories, replace
from . import slurm_accounting_text as text
from .slurm_accounting_plan import KINDS, ROOT, described, kept, plan

RECORD = "/var/lib/allreduce/slurm_accounting.json"
FORMAT = 1
# Seconds for one command, and between two looks at a cluster that slurmctld has not registered yet.
SECONDS, PAUSE = 60, 2
# Of an answer that goes into a message.
LONGEST = 400
_PLACE = ["Cluster", "Account", "User", "Partition"]


def settle(options, machine, check):
    """Bring QoS and accounts to the options of the module; return what it answers. ValueError where that cannot be done.

    machine: has ``tree``, ``run(arguments) -> (exit code, output)`` and ``sleep(seconds)``; check: change nothing
    """
    wanted, ours = desired(options), load(machine.tree)
    state = _read_ready(wanted, machine, options["wait"], check)
    commands, mine = plan(wanted, state, ours), kept(wanted, state, ours)
    before = described(wanted, ours, state)
    after = described(wanted, {kind: [] for kind in KINDS}, wanted) if commands else before
    if not check and (commands or mine != ours):
        # What is about to be made is known as ours before it is there; what goes is, until it is gone.
        keep(machine.tree, {kind: sorted(set(mine[kind]) | set(ours[kind])) for kind in KINDS})
        said = [_execute(machine.run, ["--immediate"] + command) for command in commands]
        if commands:
            _refuse_leftovers(plan(wanted, read(machine.run, wanted["cluster"]), ours), said)
        keep(machine.tree, mine)
    return {
        "changed": bool(commands) or mine != ours, "commands": commands, "before": before, "after": after, "unread": state["unread"],
    }  # fmt: skip


def _refuse_leftovers(left, said):
    if left:
        raise ValueError(
            "sacctmgr did not do %s; it said: %s" % (" ".join(left[0]), _clean(" ".join(said)) or "nothing")
        )


def desired(options):
    """Return the declaration in the form of slurm_accounting_plan."""
    qos = {one["name"]: _settings(one, text.QOS) for one in options["qos"]}
    accounts = {one["name"]: _settings(one, text.ACCOUNT) for one in options["accounts"]}
    users = [(one["name"], user) for one in options["accounts"] for user in one.get("users") or []]
    return {"cluster": options["cluster"], "qos": qos, "accounts": accounts, "users": users}


def _settings(one, kinds):
    """Return the settings of an entry; those that are not given are none."""
    found = {key: one.get(key) for key, dummy, dummy_read, dummy_write in kinds}
    for key, other in (("priority", 0), ("shares", 1), ("parent", ROOT), ("default_qos", "")):
        if key in found and found[key] is None:
            found[key] = other
    for key in ("preempts", "qos"):
        if key in found:
            found[key] = sorted(found[key] or [])
    return found


def load(tree):
    """Return {kind: names that we made}. ValueError for a record that is not ours to understand."""
    content = tree.text(RECORD)
    if content is None:
        return {kind: [] for kind in KINDS}
    record = json.loads(content)
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise ValueError("%s is not of this version of the role" % RECORD)
    return dict({kind: record[kind] for kind in ("qos", "accounts")}, users=[tuple(one) for one in record["users"]])


def keep(tree, ours):
    """Write the record, or remove it where nothing is ours."""
    path = tree.path(RECORD)
    if any(ours.values()):
        if not os.path.isdir(os.path.dirname(path)):
            make_directories(os.path.dirname(path))
        replace(path, json.dumps(dict(ours, format=FORMAT), sort_keys=True) + "\n")
    elif os.path.lexists(path):
        os.unlink(path)


def _read_ready(wanted, machine, wait, check):
    """Return the state once slurmctld has registered the cluster and its GPUs, which a new one does in seconds.

    In check mode it may not run yet: then nothing counts as there, and ``unread`` says why.
    """
    waited = 0
    while True:
        try:
            reason = "slurmctld has not registered cluster %s and its GPUs" % wanted["cluster"]
            state = read(machine.run, wanted["cluster"])
            if state["registered"]:
                return dict(state, unread="")
        except ValueError as error:
            reason = str(error)
        if check:
            return {
                "qos": {},
                "accounts": {},
                "users": [],
                "defaults": {},
                "partitions": [],
                "elsewhere": [],
                "unread": reason,
            }
        if waited >= wait:
            raise ValueError(reason)
        machine.sleep(PAUSE)
        waited += PAUSE


def read(run, cluster):
    """Return the state; ValueError for what sacctmgr cannot have meant."""
    qos = _lines(run, ["show", "qos"], ["Name"] + text.fields(text.QOS))
    every = _lines(run, ["show", "associations", "WOPLimits"], _PLACE + text.fields(text.ACCOUNT))
    found = [line[1:] for line in every if line[0] == cluster]
    defaults = _lines(
        run, ["show", "associations", "OnlyDefaults", "where", "cluster=%s" % cluster], ["Account", "User"]
    )
    resources = _lines(run, ["show", "tres"], ["Type", "Name"])
    accounts = {line[0]: text.read(line[len(_PLACE) - 1 :], text.ACCOUNT) for line in found if not line[1]}
    return {
        "registered": ROOT in accounts and text.GPU.split("/") in resources,
        "qos": {line[0]: text.read(line[1:], text.QOS) for line in qos},
        "accounts": accounts,
        "elsewhere": {line[1] for line in every if line[0] != cluster},
        "users": [
            (account, user) for account, user, partition in (line[:3] for line in found) if user and not partition
        ],
        "partitions": [
            (account, user) for account, user, partition in (line[:3] for line in found) if user and partition
        ],
        "defaults": {user: account for account, user in defaults if user},
    }


def _lines(run, question, fields):
    """Return the lines of an answer as lists of their fields."""
    output = _execute(run, ["--parsable2", "--noheader"] + question + ["format=%s" % ",".join(fields)])
    lines = [line.split("|") for line in output.splitlines() if line.strip()]
    for line in lines:
        if len(line) != len(fields) or not all(one.isprintable() for one in line):
            raise ValueError(
                "sacctmgr printed %r where %s were asked for" % (_clean("|".join(line)), ", ".join(fields))
            )
    return lines


def _execute(run, arguments):
    code, said = run(["timeout", str(SECONDS), "sacctmgr"] + arguments)
    if code:
        raise ValueError(
            "sacctmgr %s ended with %d: %s" % (" ".join(arguments), code, _clean(said) or "it said nothing")
        )
    return said


def _clean(said):
    """Return the end of what a program said in one line."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in said).split())[-LONGEST:].rstrip(".")
