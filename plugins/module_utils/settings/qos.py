# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shape a node's interfaces as wanted, or as they were before: read, plan, apply.

A step is {``kind``: file, unit, table or interface, ``subject``, ``before``, ``after``}.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import re

from ..host import kept_files, tc
from ..machine.problems import problem
from . import qos_plan
from .qos_facts import CGROUPS, FAMILY, RECORD, TABLE, TABLE_SHOW, parse_digest, read_live
from .tuning_plan import file_steps

FORMAT = 1
DECLARATION = "/etc/allreduce/qos.json"
TABLE_FILE = "/etc/allreduce/qos.nft"
UNIT = "allreduce-qos.service"
UNITS = "/etc/systemd/system/"
NOTHING = {"interfaces": (), "table": "", "digest": None, "files": ()}


class Machine:
    """The doors to a node. ``run(arguments, data)`` returns (exit code, output); it is None where a recorded tree is changed."""

    def __init__(self, tree, replace, run=None):
        self.tree, self.replace, self.run = tree, replace, run

    def output(self, arguments):
        """Return the output of a program, None where it cannot run."""
        status, output = self.run(arguments, None) if self.run else (1, "")
        return output if status == 0 else None


def empty():
    """Return the record of a node that nothing was changed on."""
    return {"format": FORMAT, "files": {}, "qdiscs": {}, "directories": [], "pending": False}


def load_record(tree):
    """Return the record, None where there is none; ValueError for one that is not ours to understand."""
    text = tree.text(RECORD)
    if text is None:
        return None
    record = json.loads(text)
    if record.get("format") != FORMAT:
        raise ValueError("%s has format %s; this release reads %d" % (RECORD, record.get("format"), FORMAT))
    return record


def settle(machine, wanted, check=False):
    """Bring the node to what is wanted; return {changed, changes: steps, problems, diff}, and change nothing in check mode."""
    tree = machine.tree
    older = load_record(tree)
    record, live = older or empty(), read_live(machine.output)
    steps = make_steps(machine, wanted, record, live)
    problems = []
    if steps and not check:
        known = recorded_before(tree, record, steps, live)
        write_record(machine, known)
        problems = take(machine, wanted, known, steps, live)
        if problems:
            problems += undo(machine, record, known, steps)
        after = recorded_after(known, wanted) if not problems else record
        finish(machine, after, known["directories"])
    return {"changed": bool(steps), "changes": steps, "problems": problems, "diff": qos_plan.diffs(steps)}


def make_steps(machine, wanted, record, live):
    """Return every step, from what is there; live: of read_live()."""
    paths = {one["path"] for one in wanted["files"]} | set(record["files"])
    steps = file_steps(wanted["files"], record, {path: kept_files.read(machine.tree, path) for path in paths})
    if machine.run is None:
        return steps
    if record.get("pending"):
        steps.append({"kind": "unit", "subject": UNITS + UNIT, "before": "unread\n", "after": "read\n"})
    digest = parse_digest(machine.output(TABLE_SHOW))
    if digest != wanted["digest"]:
        steps.append({"kind": "table", "subject": TABLE, "before": digest, "after": wanted["digest"]})
    steps += interface_steps(wanted["interfaces"], live)
    names = {one["name"] for one in wanted["interfaces"]}
    for name in sorted(set(record["qdiscs"]) - names):
        if is_touched(live.get(name)):
            after = qos_plan.shown_qdisc(record["qdiscs"][name])
            steps.append(_interface(name, live[name], after))
    return steps


def interface_steps(interfaces, live):
    """Return the steps to interfaces that are there and not as wanted."""
    steps = []
    for one in interfaces:
        found = live.get(one["name"])
        shaped = qos_plan.is_shaped(one, found) and qos_plan.is_ingress_shaped(one, found, live.get(one["ifb"]))
        if not shaped:
            steps.append(_interface(one["name"], found, qos_plan.shown(one)))
    return steps


def _interface(name, live, after):
    return {"kind": "interface", "subject": name, "before": qos_plan.shown_live(live), "after": after}


def is_touched(live):
    """Return True if anything of ours is on an interface."""
    return bool(live) and (tc.is_ours(live["root"]) or qos_plan.is_redirected(live))


def recorded_before(tree, record, steps, live):
    """Return the record before the steps are taken: what they change for the first time is added.

    pending: until the last of them is taken, so that a run after one that was killed has systemd read the units, and ends the record.
    """
    made = [step["subject"] for step in steps if step["kind"] == "file" and step["after"] is not None]
    directories = kept_files.missing_directories(tree, made + [RECORD])
    after = {"files": dict(record["files"]), "qdiscs": dict(record["qdiscs"])}
    for step in steps:
        if step["kind"] == "file":
            after["files"].setdefault(step["subject"], step["before"])
        elif step["kind"] == "interface" and not is_touched(live.get(step["subject"])):
            found = live.get(step["subject"])
            after["qdiscs"].setdefault(step["subject"], found["root"] if found else None)
        elif step["kind"] == "interface":
            after["qdiscs"].setdefault(step["subject"], None)  # the record was lost: the kernel's own is the best guess
    return dict(record, directories=sorted(set(record["directories"]) | set(directories)), pending=True, **after)


def recorded_after(record, wanted):
    """Return the record once all is done: what is wanted no more has been put back."""
    paths, names = ({one[key] for one in wanted[part]} for part, key in (("files", "path"), ("interfaces", "name")))
    return dict(
        record,
        files={path: was for path, was in record["files"].items() if path in paths},
        qdiscs={name: was for name, was in record["qdiscs"].items() if name in names},
        pending=False,
    )


def take(machine, wanted, record, steps, live):
    """Take the steps: rules and interfaces, whose refusal changes no file yet, then files and units. Return [problem]."""
    interfaces = {one["name"]: one for one in wanted["interfaces"]}
    problems = []
    for step in steps:
        if step["kind"] == "table":
            problems += load_table(machine, wanted["table"])
        elif step["kind"] == "interface" and not problems:
            name = step["subject"]
            problems += bring(machine, name, interfaces.get(name), record["qdiscs"].get(name), live.get(name))
    if not problems:
        problems += take_files(machine, [step for step in steps if step["kind"] in ("file", "unit")])
    return problems


def bring(machine, name, one, recorded, live):
    """Bring an interface to what is wanted of it, None for what it was before; return [problem]."""
    problems = end_ingress(machine, name, live)
    ours = live is not None and tc.is_ours(live["root"])
    if one is None:
        return problems + (batch(machine, qos_plan.restore_lines(name, recorded)) if ours else [])
    if not problems and not qos_plan.is_shaped(one, live):
        again = ["qdisc del dev %s root" % name] if ours else []
        problems += batch(machine, again + qos_plan.tree_lines(name, one))
    if not problems and one["ifb"]:
        problems += begin_ingress(machine, one)
    return problems


def begin_ingress(machine, one):
    """Send arriving packets through classes, too; return [problem], and leave nothing of it where there is any."""
    machine.run(["ip", "link", "del", "dev", one["ifb"]], None)  # of a run that was interrupted, if any
    problems = started(machine, ["ip", "link", "add", "name", one["ifb"], "type", "ifb"])
    problems += started(machine, ["ip", "link", "set", "dev", one["ifb"], "up"]) if not problems else []
    problems += batch(machine, qos_plan.ingress_lines(one)) if not problems else []
    if problems:
        machine.run(["tc", "qdisc", "del", "dev", one["name"], "ingress"], None)
        machine.run(["ip", "link", "del", "dev", one["ifb"]], None)
    return problems


def end_ingress(machine, name, live):
    """Let arriving packets in as they come; return [problem]. The device that they went through goes, with its classes."""
    if live is None or not qos_plan.is_redirected(live):
        return []
    return batch(machine, ["qdisc del dev %s ingress" % name]) + started(
        machine, ["ip", "link", "del", "dev", live["redirect"]]
    )


def load_table(machine, text):
    """Load the rules in place of those that are there; no text takes them away. Return [problem]."""
    kept = qos_plan.loadable(text, lambda path: machine.tree.is_directory("%s/%s" % (CGROUPS, path)))
    name = "table %s %s\n" % (FAMILY, TABLE)
    return started(machine, ["nft", "-f", "-"], kept or "add %sdelete %s" % (name, name))


def take_files(machine, steps):
    """Put the files in place, and have the unit run with them; return [problem]."""
    units = any(step["subject"].startswith(UNITS) for step in steps) and machine.run is not None
    ends = [step for step in steps if step["subject"] == UNITS + UNIT and step["after"] is None]
    if ends and units:
        machine.run(["systemctl", "stop", UNIT], None)  # which may never have been started
    for step in steps:
        if step["kind"] == "file":
            kept_files.put(machine.tree, step["subject"], step["after"], machine.replace)
    problems = started(machine, ["systemctl", "daemon-reload"]) if units else []
    if units and machine.tree.exists(UNITS + UNIT) and not problems:
        problems += started(machine, ["systemctl", "restart", UNIT])
    return problems


def undo(machine, record, known, steps):
    """Go back to what was there before a run that failed; return [problem].

    record: that of before the run; known: with what this run found.
    """
    for step in steps:
        if step["kind"] == "file" and kept_files.read(machine.tree, step["subject"]) != step["before"]:
            kept_files.put(machine.tree, step["subject"], step["before"], machine.replace)
    declared = json.loads(machine.tree.text(DECLARATION) or '{"interfaces": []}')["interfaces"]
    older, live, problems = {one["name"]: one for one in declared}, read_live(machine.output), []
    for step in steps:
        name = step["subject"]
        if step["kind"] == "interface" and is_touched(live.get(name)):
            one = older.get(name) if name in record["qdiscs"] else None
            problems += bring(machine, name, one, known["qdiscs"].get(name), live.get(name))
        elif step["kind"] == "table" and parse_digest(machine.output(TABLE_SHOW)) != step["before"]:
            problems += load_table(machine, machine.tree.text(TABLE_FILE) or "")
    return problems


def batch(machine, lines):
    """Give lines to tc, of which each is one command; return [problem], which names the line that failed."""
    problems = started(machine, ["tc", "-batch", "-"], "".join(line + "\n" for line in lines))
    for one in problems:
        number = re.search(r"-:(\d+)", one["detail"]["reason"])
        if number and int(number.group(1)) <= len(lines):
            one["subject"] = "tc " + lines[int(number.group(1)) - 1]
    return problems


def started(machine, command, data=None):
    """Run a program; return [problem] where it fails."""
    status, output = machine.run(command, data)
    if status == 0:
        return []
    return [problem("command_failed", " ".join(command), status=status, reason=output.strip())]


def write_record(machine, record):
    """Keep the record where only root reads it."""
    text = json.dumps(record, indent=1, sort_keys=True) + "\n"
    kept_files.put(machine.tree, RECORD, {"content": text, "mode": "0600"}, machine.replace)


def finish(machine, record, directories):
    """Keep the record as long as there is anything to put back, and no directory that was made and is empty."""
    if record["files"] or record["qdiscs"]:
        write_record(machine, record)
        return
    if machine.tree.exists(RECORD):
        kept_files.put(machine.tree, RECORD, None, machine.replace)
    kept_files.remove_empty(machine.tree, directories)
