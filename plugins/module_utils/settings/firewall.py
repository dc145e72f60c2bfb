# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring a node's firewall to what is wanted, or back to what it was before: read, plan, apply, and a way back on a timer."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re
import shutil

from ..host import kept_files, services, ufw
from ..machine.problems import problem
from . import firewall_live, firewall_plan
from .firewall_facts import RECORD, words

ROLLBACK = "/var/lib/allreduce/firewall-rollback"
SNAPSHOT = ROLLBACK + "/snapshot.json"
PROGRAM = ROLLBACK + "/program"
TIMER = "allreduce-firewall-rollback"
SELINUX, ENFORCE = "/etc/selinux/config", "/sys/fs/selinux/enforce"
OWNERS = ("firewalld", "ufw")


class Machine:
    """The doors to a node. ``run(arguments, data)`` returns (exit code, output); it is None where a recorded tree is changed."""

    def __init__(self, tree, replace, run=None):
        self.tree, self.replace, self.run = tree, replace, run

    def start(self, arguments, data=None):
        """Return (exit code, output) of a program; on a recorded tree none is started."""
        return self.run(arguments, data) if self.run else (0, "")

    def output(self, arguments):
        """Return the output of a program, None where it cannot run."""
        status, output = self.run(arguments, None) if self.run else (1, "")
        return output if status == 0 else None


def settle(machine, wanted, rollback=None, check=False):
    """Return {changed, changes: steps, problems, diff}; change nothing in check mode. rollback: {seconds, python, files}."""
    tree = machine.tree
    text, pending = tree.text(RECORD), tree.text(SNAPSHOT)
    record = firewall_plan.parse(text, RECORD) if text else firewall_plan.empty()
    older = firewall_plan.parse(pending, SNAPSHOT) if pending else None
    wanted = completed(tree, wanted)
    stopped = [name for name in OWNERS if wanted["disabled"] and service(machine, name)["known"]]
    steps, problems = make_steps(machine, wanted, record, stopped), []
    if older and not steps:
        steps = [{"kind": "confirmation", "subject": TIMER, "before": "pending", "after": "confirmed"}]
    if steps and not check:
        problems = apply(machine, steps, (record, older), wanted, stopped, rollback)
    return {"changed": bool(steps), "changes": steps, "problems": problems, "diff": firewall_plan.diffs(steps)}


def completed(tree, wanted):
    """Return ``wanted`` with what follows from the node's own files: SELinux is off only where it is there."""
    if not wanted["disabled"] or tree.text(SELINUX) is None:
        return wanted
    entry = kept_files.read(tree, SELINUX)
    text = re.sub(r"(?m)^SELINUX=enforcing\b.*$", "SELINUX=permissive", entry["content"])
    values = [{"path": ENFORCE, "value": "0"}] if tree.exists(ENFORCE) else []
    return dict(wanted, files=[{"path": SELINUX, "content": text, "mode": entry["mode"]}], values=values)


def make_steps(machine, wanted, record, stopped):
    """Return every step, from what is there."""
    tree = machine.tree
    paths = {one["path"] for one in wanted["files"]} | set(record["files"])
    places = {one["path"] for one in wanted["values"]} | set(record["values"])
    steps = firewall_plan.file_steps(wanted["files"], record, {path: kept_files.read(tree, path) for path in paths})
    steps += block_steps(tree, wanted["owner"])
    steps += firewall_plan.value_steps(wanted["values"], record, {path: words(tree.text(path)) for path in places})
    texts = {one["path"]: one.get("content") for one in wanted["files"]}
    if machine.run:
        live = firewall_live.live(tree, machine.output)
        steps += firewall_live.steps(texts, wanted["owner"], live, bool(record.get("pending")))
    names = set(stopped) | set(record["services"])
    found = {name: {key: service(machine, name)[key] for key in ("enabled", "active")} for name in names}
    return steps + firewall_plan.service_steps(stopped, record, found)


def block_steps(tree, owner):
    """Return the steps to our lines in ufw's files; nothing else of these files is ever changed."""
    steps = []
    for path in sorted(ufw.CHAINS):
        found = kept_files.read(tree, path)
        if found and "content" in found:
            text = found["content"]
            text = ufw.with_block(text, path) if owner == "ufw" else ufw.without_block(text)
            if text != found["content"]:
                steps.append({"kind": "file", "subject": path, "before": found, "after": dict(found, content=text)})
    return steps


def service(machine, name):
    """Return {known, enabled, active} of a service."""
    shown = machine.output(services.SHOW + [name]) or ""
    state = services.parse_show(shown, [name])[name]
    return {"known": "LoadState=loaded" in shown, "enabled": bool(state["enabled"]), "active": bool(state["active"])}


def apply(machine, steps, known, wanted, stopped, rollback):
    """Record what was there, arm the way back, take the steps; whatever fails, go back at once. Return [problem]."""
    tree, (record, older) = machine.tree, known
    made = [step["subject"] for step in steps if step["kind"] == "file" and step["after"] is not None]
    directories = kept_files.missing_directories(tree, made + [RECORD])
    snapshot = firewall_plan.snapshot(steps, older, kept_files.read(tree, RECORD), RECORD)
    record = firewall_plan.recorded_before(record, steps, ufw.CHAINS, directories)
    problems = arm(machine, dict(snapshot, directories=record["directories"]), rollback) if rollback else []
    if problems:  # nothing was changed yet
        return problems + ([] if older else disarm(machine))
    write(machine, RECORD, firewall_plan.dump(record))
    problems = take(machine, [step for step in steps if step["kind"] != "confirmation"])
    if problems:
        return problems + restore(machine, snapshot) + disarm(machine)
    after = firewall_plan.recorded_after(record, wanted, stopped)
    write(machine, RECORD, firewall_plan.dump(after))
    # Until it is confirmed, the record shows the next run that there is something to confirm.
    if not rollback:
        if older:  # of a run that had one
            disarm(machine)
        if wanted["owner"] is None:
            forget(machine)
    return []


def forget(machine):
    """Take the record away where nothing is left that could be put back, with the directories that this leaves empty."""
    text = machine.tree.text(RECORD)
    record = firewall_plan.parse(text, RECORD) if text else None
    if record and firewall_plan.is_empty(record):
        kept_files.put(machine.tree, RECORD, None, machine.replace)
        kept_files.remove_empty(machine.tree, record["directories"])


def take(machine, steps):
    """Take the steps in their order: files, what brings them into use, values, services. Return [problem]."""
    for step in steps:
        if step["kind"] == "file":
            kept_files.put(machine.tree, step["subject"], step["after"], machine.replace)
    problems = firewall_live.load(machine, [step["subject"] for step in steps if step["kind"] in ("file", "rules")])
    for step in steps:
        if step["kind"] == "value":
            problems += set_value(machine.tree, step)
        elif step["kind"] == "service":
            problems += set_service(machine, step["subject"], step["after"])
    return problems


def set_value(tree, step):
    """Write a value; return [problem] where the kernel refuses it."""
    try:
        with open(tree.path(step["subject"]), "w") as stream:
            stream.write(step["after"] or "\n")  # nothing at all would not be a write
    except EnvironmentError as error:
        return [problem("not_set", step["subject"], value=step["after"], reason=error.strerror)]
    return []


def set_service(machine, name, state):
    """Enable or disable a service, start or stop it; return [problem]."""
    verbs = ["enable" if state["enabled"] else "disable", "start" if state["active"] else "stop"]
    return [one for verb in verbs for one in firewall_live.started(machine, ["systemctl", verb, name])]


def arm(machine, snapshot, rollback):
    """Start a timer that goes back to the snapshot unless the change is confirmed in time; return [problem]."""
    for one in rollback["files"]:
        write(machine, one["path"], one["content"])
    write(machine, SNAPSHOT, firewall_plan.dump(dict(snapshot, boot=boot(machine.tree))))
    machine.start(["systemctl", "stop", TIMER + ".timer"])  # of a run before, if any
    seconds = "--on-active=%d" % rollback["seconds"]
    command = ["systemd-run", "--quiet", "--collect", "--unit=" + TIMER, seconds, "--timer-property=AccuracySec=1s"]
    return firewall_live.started(machine, command + [rollback["python"], "-I", "-B", PROGRAM, "restore"])


def boot(tree):
    """Return a text that identifies a boot, in containers, too: their kernel is older than they are."""
    started = (tree.text("/proc/1/stat") or "").rpartition(")")[2].split()
    return "%s %s" % (tree.text("/proc/sys/kernel/random/boot_id"), started[19] if len(started) > 19 else "")


def disarm(machine):
    """Take timer and snapshot away, and directories of ours that this leaves empty; no problem can come of it."""
    machine.start(["systemctl", "stop", TIMER + ".timer"])
    text = machine.tree.text(SNAPSHOT)
    shutil.rmtree(machine.tree.path(ROLLBACK), ignore_errors=True)
    if text:
        kept_files.remove_empty(machine.tree, firewall_plan.parse(text, SNAPSHOT)["directories"])
    return []


def confirm(machine, check=False):
    """Keep what was changed; return [problem] where the timer has already gone back."""
    if not machine.tree.exists(SNAPSHOT):
        return [problem("rolled_back", TIMER)]
    if not check:
        disarm(machine)
        forget(machine)
    return []


def restore(machine, snapshot):
    """Go back to a snapshot, files first; return [problem]."""
    for path in sorted(snapshot["files"]):
        entry = snapshot["files"][path]
        if entry is not None or machine.tree.exists(path):
            kept_files.put(machine.tree, path, entry, machine.replace)
    problems = firewall_live.load(machine, sorted(snapshot["files"]) + ["nftables"])
    for path, value in sorted(snapshot["values"].items()):
        problems += set_value(machine.tree, {"subject": path, "after": value})
    for name, state in sorted(snapshot["services"].items()):
        problems += set_service(machine, name, state)
    return problems


def write(machine, path, text):
    """Keep a file where only root reads it."""
    kept_files.put(machine.tree, path, {"content": text, "mode": "0600"}, machine.replace)
