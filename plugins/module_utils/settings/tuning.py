# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring a node to its tuning, or back to what it was before: read, plan, apply."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..host import interrupts, kept_files, kernel_arguments, services, sysctl, tuned
from ..machine import pci_config
from ..machine.problems import problem
from . import applied, tuning_plan, tuning_record

# Files, and programs that did not run after them, that the next boot brings into use.
ARGUMENTS = (kernel_arguments.DROP_IN, "update-grub")


class Machine:
    """The doors to a node, and where what was before is recorded.

    ``run`` returns (exit code, both outputs); it is None where a recorded tree is changed.
    """

    def __init__(self, tree, replace, run=None, record=tuning_record.PATH):
        self.tree, self.replace, self.run, self.record = tree, replace, run, record


def settle(machine, wanted, check=False):
    """Bring the node to what is wanted; return {changed, changes: steps, problems, diff, reboot}."""
    tree = machine.tree
    record = tuning_record.load(tree, machine.record)
    known = record or tuning_record.empty(tree)
    arguments, profile = kernel_arguments.read(tree, services.is_container(tree)), tuned.read(tree)
    wanted = resolved(tree, wanted, arguments["tool"])
    steps, problems = make_steps(tree, wanted, known, arguments, profile), []
    if steps and not check:
        made = [step["subject"] for step in steps if step["kind"] == "file" and step["after"] is not None]
        directories = kept_files.missing_directories(tree, made + [machine.record])
        had = {one: kernel_arguments.had(tree, arguments["tool"], one) for one in wanted["arguments"]}
        lines = kernel_arguments.lines(tree, arguments["tool"])
        known = tuning_plan.recorded_before(known, steps, directories, had, lines, profile["directory"])
        write_record(machine, known)
        record = known
        problems = apply_steps(machine, steps, known, arguments["tool"], profile["directory"])
    if not check:
        finish(machine, record, known, wanted, problems)
    return {
        "changed": bool(steps),
        "changes": steps,
        "problems": problems,
        "diff": tuning_plan.diffs(steps),
        "reboot": any(one["kind"] == "argument" or one["subject"] in ARGUMENTS for one in steps),
    }


def holding(tree, name):
    """Return the digest of what was last applied and recorded by this name, where it still holds."""
    machine = Machine(tree, None, record=tuning_record.path_of(name))
    return applied.holding(tree, name, lambda wanted: settle(machine, wanted, check=True))


def resolved(tree, wanted, tool=None):
    """Return ``wanted`` with a value for each file of a pattern, those of interrupts, and what the tool for arguments needs.

    GRUB's drop-in says all arguments; elsewhere each is a step of its own.
    """
    values = []
    for one in wanted["values"]:
        paths = [one["path"]] if pci_config.is_register(one["path"]) else sysctl.expand(tree, one["path"])
        values += [{"path": path, "value": one["value"]} for path in paths]
    for interface in wanted["interfaces"]:
        values += interrupt_values(tree, interface)
    arguments, files = wanted["arguments"], list(wanted["files"])
    if tool == "update-grub" and arguments:
        files.append({"path": kernel_arguments.DROP_IN, "content": kernel_arguments.drop_in(arguments), "mode": "0644"})
    kept = arguments if tool in ("grubby", "bls") else []
    return dict(wanted, values=values, files=files, arguments=kept)


def interrupt_values(tree, interface):
    """Return all interrupts of the interface, so that none is put back while wanted; those inside stay where they are."""
    reading = interrupts.read(tree, interface)
    outside, found = interrupts.strays(reading), []
    for number in reading["irqs"] if reading["cpus"] else ():
        path = interrupts.affinity_path(number)
        inside = sysctl.selected(tree.text(path))
        found.append({"path": path, "value": reading["cpus"] if number in outside else inside})
    return [one for one in found if one["value"] is not None]


def make_steps(tree, wanted, record, arguments, profile):
    """Return every step, from what is there; arguments, profile: as kernel_arguments and tuned read them."""
    paths = {one["path"] for one in wanted["files"]} | set(record["files"])
    places = {one["path"] for one in wanted["values"]} | set(record["values"])
    active = {key: profile[key] for key in ("profile", "mode")}
    values = {path: read_value(tree, path) for path in places}
    return (
        tuning_plan.file_steps(wanted["files"], record, {path: kept_files.read(tree, path) for path in paths})
        + tuning_plan.argument_steps(wanted["arguments"], record, arguments["configured"] or [])
        + tuning_plan.profile_steps(wanted["profile"], record, active)
        + tuning_plan.value_steps(wanted["values"], record, values)
        + tuning_plan.command_steps(record)
    )


def apply_steps(machine, steps, record, tool, profile_directory):
    """Take the steps, files first and values last, and return [problem]."""
    problems = []
    for step in steps:
        if step["kind"] == "file":
            kept_files.put(machine.tree, step["subject"], step["after"], machine.replace)
    commands = tuning_plan.commands_after(steps, profile_directory)
    add, remove = tuning_plan.argument_changes(steps)
    there = {one: kernel_arguments.had(machine.tree, tool, one) for one in remove}
    if tool == "grubby" and add + remove:
        commands.append(kernel_arguments.grubby_command(add, remove))
    commands += [tuned.command(**step["after"]) for step in steps if step["kind"] == "profile"]
    commands += [command for command in record["commands"] if command not in commands]
    for command in commands:
        problems += start(machine, command)
    edit_arguments(machine, add if tool == "bls" else [], there, record, tool)
    for step in steps:
        if step["kind"] == "value":
            problems += set_value(machine.tree, step)
    return problems


def edit_arguments(machine, add, there, record, tool):
    """Add arguments where there is no tool for it; take those away that a place did not have, even after grubby did.

    there: {argument that goes: paths of the places that have it now}; one that another tool has removed does not come back.
    """
    places = kernel_arguments.places(machine.tree, tool) if add or there else {}
    for path, before in sorted(places.items()):
        stays = [one for one in sorted(there) if path in record["arguments"][one] and path in there[one]]
        text = kernel_arguments.with_arguments(path, before, add, [])
        if there:
            text = kernel_arguments.restored(path, text, stays, sorted(there), record["lines"].get(path))
        if text != before:
            kept_files.put(machine.tree, path, dict(kept_files.read(machine.tree, path), content=text), machine.replace)


def start(machine, command):
    """Run a program and return [problem] where it fails; on a recorded tree none is started."""
    if machine.run is None:
        return []
    status, output = machine.run(command)
    if status == 0:
        return []
    return [problem("command_failed", " ".join(command), command=command, status=status, reason=output.strip())]


def read_value(tree, path):
    """Return the setting of a file or of a register of a PCI device; None where the node does not have it."""
    return pci_config.read_register(tree, path) if pci_config.is_register(path) else sysctl.selected(tree.text(path))


def set_value(tree, step):
    """Write a value and return [problem] where the kernel refuses it; what a program has set by now is left."""
    path = step["subject"]
    if read_value(tree, path) == step["after"]:
        return []
    try:
        if pci_config.is_register(path):
            pci_config.write_register(tree, path, step["after"])
        else:
            with open(tree.path(path), "w") as stream:
                stream.write(step["after"] or "\n")  # nothing at all would not be a write
    except EnvironmentError as error:
        return [problem("not_set", path, value=step["after"], reason=error.strerror)]
    is_now = read_value(tree, path)
    if is_now != step["after"]:
        return [problem("not_kept", path, value=step["after"], found=is_now)]
    return []


def write_record(machine, record):
    """Keep the record where only root reads it."""
    entry = {"content": tuning_record.dump(record), "mode": "0600"}
    kept_files.put(machine.tree, machine.record, entry, machine.replace)


def finish(machine, before, record, wanted, problems):
    """Bring the record to what is left to put back, or remove it; so with the directories that were made, once they are empty."""
    after = tuning_plan.recorded_after(record, wanted, problems)
    tree = machine.tree
    is_empty = tuning_record.is_empty(after)
    if is_empty and tree.exists(machine.record):
        kept_files.put(tree, machine.record, None, machine.replace)
    kept_files.remove_empty(tree, after["directories"])
    after["directories"] = [path for path in after["directories"] if tree.exists(path)]
    if not is_empty and after != before:
        write_record(machine, after)
