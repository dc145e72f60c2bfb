# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring a node to its scratch, or take it down: read, plan, apply, and again until nothing is left to do."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os

from ..host import kept_files
from ..machine.files import make_directories
from ..machine.problems import problem
from . import disks, plan, reading
from . import record as records
from .choice import choose, is_ours

# An array is put together, gets a file system, is mounted, is given away: no scratch needs more.
ROUNDS = 5


class Machine:
    """The doors to a node: ``replace(path, bytes)`` puts a file in place, ``run(arguments)`` returns (exit code, output).

    ``output(arguments)`` returns what a program prints that only reads, None where it fails; ``label(path)`` gives a file the label
    that SELinux's policy has for it, where there is one.
    """

    def __init__(self, tree, replace, run, output, new_uuid, is_free=disks.is_free, label=None):
        self.tree, self.replace, self.run, self.output = tree, replace, run, output
        self.new_uuid, self.is_free, self.label = new_uuid, is_free, label or (lambda path: None)


def settle(machine, wanted, check=False):
    """Return {changes, left, seen, problems}; left: why this node gets no scratch, seen: what was seen on disks."""
    known, made = records.load(machine.tree), []
    for _round in range(ROUNDS):
        seen = reading.read(machine.tree, machine.output, wanted["disks"], wanted["mount_point"], machine.is_free)
        choice = choose(wanted, seen, known)
        if not choice["disks"]:
            return _answer(made, choice, choice["problems"])
        record = known or records.new(wanted, choice["disks"], machine.new_uuid)
        steps, problems = plan.plan_present(wanted, seen, record, choice)
        if problems or (check and steps):
            return _answer(made + steps, choice, problems)
        if not steps:
            _forget_stopped(machine, record, check)
            return _answer(made, choice, [])
        known = remember(machine, record, choice, steps)
        problems = apply_steps(machine, steps)
        made += steps
        if problems:
            return _answer(made, choice, problems)
        known = done(machine, known)
    return _answer(made, choice, [problem("not_settled", one["subject"], kind=one["kind"]) for one in steps])


def take_down(machine, destroy, check=False):
    """Return {changes, left, seen, problems} of taking the scratch down; its data is only destroyed on demand."""
    record = records.load(machine.tree)
    if record is None:
        return _answer([], None, [])
    seen = reading.read(machine.tree, machine.output, [], record["mount_point"], machine.is_free)
    ours = [disk for disk in seen["disks"] if is_ours(disk, record)]
    steps, problems = plan.plan_absent(seen, record, ours, destroy)
    ends = destroy or machine.tree.exists(records.PATH)
    if ends and not problems:
        steps.append(plan.step("record", records.PATH, "there", None if destroy else "kept for later"))
    if problems or check:
        return _answer(steps, None, problems)
    if any(one["kind"] == "initramfs" for one in steps):
        _write(machine, dict(record, pending=["initramfs"]))
    problems = apply_steps(machine, steps)
    if not problems and ends:
        _put_away(machine, None if destroy else record)
    return _answer(steps, None, problems)


def remember(machine, record, choice, steps):
    """Write down what is about to be done, before it is, and return it."""
    paths = [one["subject"] for one in steps if one["kind"] in ("file", "directory") and one["before"] is None]
    trim = record["trim"] or any(one["kind"] == "timer" for one in steps)
    pending = ["initramfs"] if any(one["kind"] == "initramfs" for one in steps) else []
    entries = [records.entry(one) for one in choice["disks"]] if choice["blank"] else record["disks"]
    made = sorted(set(record["made"] + paths))
    return _write(machine, dict(record, made=made, trim=trim, pending=pending, disks=entries))


def done(machine, record):
    """Return the record of a round that went well."""
    return _write(machine, dict(record, pending=[])) if record["pending"] else record


def apply_steps(machine, steps):
    """Take the steps in their order, up to the first that fails; return [problem]."""
    for one in steps:
        problems = _apply(machine, one)
        if problems:
            return problems
    return []


def _apply(machine, one):
    if one["kind"] == "file":
        return _put_file(machine, one)
    if one["kind"] == "directory":
        return _directory(machine, one)
    if one["kind"] == "owner":
        place = machine.tree.path(one["subject"])
        os.chown(place, one["after"]["uid"], one["after"]["gid"])
        os.chmod(place, int(one["after"]["mode"], 8))
        machine.label(place)  # the root of a new file system has none, and neither would what is made below it
    return _start(machine, one["command"]) if one["command"] else []


def _put_file(machine, one):
    before = kept_files.read(machine.tree, machine.tree.resolve(one["subject"]))
    entry = dict(before or {"mode": "0644"}, content=one["after"])
    kept_files.put(
        machine.tree, machine.tree.resolve(one["subject"]), None if one["after"] is None else entry, machine.replace
    )
    if machine.tree.is_directory("/run/systemd/system"):
        return _start(machine, ["systemctl", "daemon-reload"])
    return []


def _directory(machine, one):
    place = machine.tree.path(one["subject"])
    if one["after"] is None:
        kept_files.remove_empty(machine.tree, [one["subject"]])
        return []
    make_directories(place)
    os.chmod(place, 0)
    return []


def _start(machine, command):
    code, said = machine.run(command)
    if code == 0:
        return []
    return [problem("command_failed", " ".join(command), status=code, reason=said.strip()[-300:])]


def _write(machine, record):
    entry = {"content": records.dump(record), "mode": "0644"}
    kept_files.put(machine.tree, records.PATH, entry, machine.replace)
    return record


def _put_away(machine, record):
    """Take the record away, or keep it as that of a stopped scratch."""
    if record is not None:
        entry = {"content": records.dump(dict(record, made=[], trim=False, pending=[])), "mode": "0644"}
        kept_files.put(machine.tree, records.STOPPED, entry, machine.replace)
    for path in (records.PATH,) + ((records.STOPPED,) if record is None else ()):
        if machine.tree.exists(path):
            os.unlink(machine.tree.path(path))


def _forget_stopped(machine, record, check):
    """End a stop whose scratch is there again."""
    if check or not machine.tree.exists(records.STOPPED):
        return
    _write(machine, record)
    os.unlink(machine.tree.path(records.STOPPED))


def _answer(steps, choice, problems):
    choice = choice or {"left": None, "seen": []}
    return {"changes": steps, "left": choice["left"], "seen": choice["seen"], "problems": problems}
