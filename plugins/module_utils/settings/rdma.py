# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring a node's ports, names and modules to what is declared, or back to what they were: read, plan, apply."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json

from ..host import dcb, kept_files, sysctl
from ..machine.problems import problem
from . import rdma_plan, tuning_plan
from .tuning import set_value, start

PATH = "/var/lib/allreduce/rdma.json"


def load(tree):
    """Return the record, or None where there is none. ValueError for one that is not ours to understand."""
    found = tree.text(PATH)
    if found is None:
        return None
    record = json.loads(found)
    if record.get("format") != rdma_plan.FORMAT:
        raise ValueError("%s has format %s; this release reads %d" % (PATH, record.get("format"), rdma_plan.FORMAT))
    return record


def settle(machine, wanted, check=False):
    """Bring the node to what is wanted; return {changed, changes: steps, problems, diff}. machine: tuning.Machine."""
    tree = machine.tree
    record = load(tree)
    known = record or rdma_plan.empty()
    wanted = dict(wanted, values=expanded(tree, wanted["values"]))
    steps, problems = make_steps(machine, wanted, known)
    if known.get("pending"):
        steps += [
            {"kind": "command", "subject": " ".join(one), "before": "due", "after": "done"} for one in rdma_plan.READ
        ]
    if steps and not problems and not check:
        made = [step["subject"] for step in steps if step["kind"] == "file" and step["after"] is not None]
        known = rdma_plan.recorded_before(known, steps, kept_files.missing_directories(tree, made + [PATH]))
        write_record(machine, known)
        problems = apply_steps(machine, steps)
        finish(machine, known, wanted, problems)
    return {"changed": bool(steps), "changes": steps, "problems": problems, "diff": diffs(steps)}


def expanded(tree, values):
    """Return the values with a path for each file of a pattern; a file that is not there is left out."""
    return [{"path": path, "value": one["value"]} for one in values for path in sysctl.expand(tree, one["path"])]


def make_steps(machine, wanted, record):
    """Return (every step, problems that keep all of them from being taken)."""
    tree = machine.tree
    paths = {one["path"] for one in wanted["files"]} | set(record["files"])
    places = {one["path"] for one in wanted["values"]} | set(record["values"])
    values = {path: sysctl.selected(tree.text(path)) for path in places}
    parts = rdma_plan.targets(wanted["ports"], record["ports"])
    readings = read_ports(machine, rdma_plan.interfaces(parts))
    lacking = [
        one for one in rdma_plan.targets(wanted["ports"], {}) if not rdma_plan.has(readings.get(one.split("/")[0]), one)
    ]
    steps = (
        tuning_plan.file_steps(wanted["files"], record, {path: kept_files.read(tree, path) for path in paths})
        + module_steps(tree, wanted["modules"], record["modules"])
        + rdma_plan.port_steps(parts, readings)
        + tuning_plan.value_steps(wanted["values"], record, values)
    )
    is_real = machine.run is not None
    return steps, [problem("no_bridging", name) for name in rdma_plan.interfaces(lacking)] if is_real else []


def module_steps(tree, wanted, recorded):
    """Return steps that load what is wanted, and unload what was loaded by us and is wanted no more."""
    add = [name for name in wanted if not is_loaded(tree, name)]
    remove = [name for name in recorded if name not in wanted and is_loaded(tree, name)]
    steps = [{"kind": "module", "subject": name, "before": None, "after": "loaded"} for name in add]
    return steps + [{"kind": "module", "subject": name, "before": "loaded", "after": None} for name in remove]


def is_loaded(tree, name):
    return tree.exists("/sys/module/" + name.replace("-", "_"))


def read_ports(machine, names):
    """Return {interface: what dcb shows}; nothing on a recorded tree."""
    if machine.run is None:
        return {}

    def output(arguments):
        status, said = machine.run(arguments)
        return said if status == 0 else None

    return {name: dcb.read_port(output, name) for name in names}


def apply_steps(machine, steps):
    """Take the steps: files first, then what makes them known, modules, ports, values. Return [problem]."""
    problems = []
    for step in steps:
        if step["kind"] == "file":
            kept_files.put(machine.tree, step["subject"], step["after"], machine.replace)
    for arguments in commands_after(steps):
        problems += start(machine, arguments)
    for step in steps:
        if step["kind"] == "module":
            arguments = ["modprobe"] + ([] if step["after"] else ["-r"]) + [step["subject"]]
            problems += [dict(one, subject=step["subject"]) for one in start(machine, arguments)]
        elif step["kind"] == "port":
            problems += set_part(machine, step)
        elif step["kind"] == "value":
            problems += set_value(machine.tree, step)
    return problems


def commands_after(steps):
    """Return the programs that bring changed files into use, and those that a run before did not reach."""
    subjects = [step["subject"] for step in steps if step["kind"] in ("file", "command")]
    due = zip(rdma_plan.READ, ("/etc/systemd/system/", "/etc/udev/rules.d/"))
    return [one for one, place in due if any(path.startswith((place, " ".join(one))) for path in subjects)]


def set_part(machine, step):
    """Set a part of a port and return [problem] where the driver refuses it, or does not keep it."""
    part = step["subject"]
    failed = [dict(one, subject=part) for one in start(machine, rdma_plan.command(step))]
    if failed:
        return failed
    interface = part.split("/")[0]
    reading = read_ports(machine, [interface])[interface]
    is_now = rdma_plan.current(reading, part) if rdma_plan.has(reading, part) else None
    if is_now == step["after"]:
        return []
    return [problem("not_kept", part, value=rdma_plan.words(step["after"]), found=rdma_plan.words(is_now))]


def write_record(machine, record):
    """Keep the record where only root reads it."""
    entry = {"content": json.dumps(record, indent=1, sort_keys=True) + "\n", "mode": "0600"}
    kept_files.put(machine.tree, PATH, entry, machine.replace)


def finish(machine, record, wanted, problems):
    """Bring the record to what is left to put back, or remove it; so with the directories that were made, once they are empty."""
    after = rdma_plan.recorded_after(record, wanted, problems)
    tree = machine.tree
    if rdma_plan.is_empty(after):
        kept_files.put(tree, PATH, None, machine.replace)
        kept_files.remove_empty(tree, after["directories"])
    else:
        write_record(machine, after)


def diffs(steps):
    """Return the differences that Ansible shows with --diff."""
    told = [
        dict(step, before=rdma_plan.words(step["before"]), after=rdma_plan.words(step["after"]))
        if step["kind"] == "port"
        else step
        for step in steps
    ]
    return tuning_plan.diffs(told)
