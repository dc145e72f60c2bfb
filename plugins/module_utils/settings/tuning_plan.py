# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what is wanted, what is there and what was recorded to the steps, and to the record after them. Pure.

wanted: {``files``: [{path, content, mode} or {path, link}], ``values``: [{path, value}], ``interfaces`` whose interrupts
belong to their NUMA node, ``arguments``: [text], ``profile``: text}. What was recorded and is wanted no more is put back.
A step is {``kind``: file | value | argument | profile | command, ``subject``, ``before``, ``after``}; of a file, None stands for none.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..host import kept_files, logind

NOTHING = {"files": [], "values": [], "interfaces": [], "arguments": [], "profile": ""}


def file_steps(wanted, record, found):
    """Return steps to the files. found: {path: what is there} of all wanted and recorded ones."""
    targets = dict(record["files"])
    for one in wanted:
        targets[one["path"]] = {key: value for key, value in one.items() if key != "path" and value is not None}
    steps = []
    for path in sorted(targets):
        before, after = found[path], targets[path]
        if not _same(before, after):
            steps.append({"kind": "file", "subject": path, "before": before, "after": after})
    return steps


def _same(found, target):
    """Return True if a file is as wanted; what the target does not say, such as the owner, does not count."""
    if found is None or target is None:
        return found is target
    return all(found.get(key) == value for key, value in target.items()) and ("link" in found) == ("link" in target)


def value_steps(wanted, record, found):
    """Return steps to the values. found: {path: value} of all wanted and recorded ones, None for what is not there (any more)."""
    targets = dict(record["values"])
    targets.update((one["path"], one["value"]) for one in wanted)
    return [
        {"kind": "value", "subject": path, "before": found[path], "after": targets[path]}
        for path in sorted(targets)
        if found[path] is not None and found[path] != targets[path]
    ]


def argument_steps(wanted, record, configured):
    """Return steps to the kernel's arguments; what another tool has set is neither recorded nor taken away.

    configured: what every entry has. What only some have still, because an administrator has edited the others, goes, too.
    """
    add = [one for one in wanted if one not in configured]
    remove = [one for one in sorted(record["arguments"]) if one not in wanted]
    steps = [{"kind": "argument", "subject": one, "before": None, "after": one} for one in add]
    return steps + [{"kind": "argument", "subject": one, "before": one, "after": None} for one in remove]


def argument_changes(steps):
    """Return (arguments that are added, arguments that go)."""
    changed = [step for step in steps if step["kind"] == "argument"]
    add = [step["subject"] for step in changed if step["after"] is not None]
    return add, [step["subject"] for step in changed if step["after"] is None]


def profile_steps(wanted, record, found):
    """Return a step to tuned's profile, at most one. found: {profile, mode}."""
    if wanted:
        after = {"profile": wanted, "mode": "manual"}
    else:
        after = record["profile"]
    if after is None or after["profile"] == found["profile"]:
        return []
    return [{"kind": "profile", "subject": "tuned", "before": dict(found), "after": after}]


def command_steps(record):
    """Return steps for the programs that failed the last time, or that a run did not reach."""
    return [
        {"kind": "command", "subject": " ".join(one), "before": "failed", "after": "done"} for one in record["commands"]
    ]


def recorded_before(record, steps, directories=(), had=(), lines=(), profile_directory=""):
    """Return the record before the steps are taken: what they change for the first time is added, and the programs that follow.

    had: {argument: paths of places that have it}, lines: {path of a place: its line of arguments}.
    """
    after = dict(record, files=dict(record["files"]), values=dict(record["values"]))
    after["arguments"], after["lines"] = dict(record["arguments"]), dict(record["lines"])
    after["directories"] = sorted(set(record["directories"]) | set(directories))
    due = commands_after(steps, profile_directory)
    after["commands"] = record["commands"] + [one for one in due if one not in record["commands"]]
    for step in steps:
        kind, subject, before = step["kind"], step["subject"], step["before"]
        if kind in ("file", "value"):
            after[kind + "s"].setdefault(subject, before)
        elif kind == "argument" and before is None:
            after["arguments"].setdefault(subject, dict(had).get(subject, []))
            after["lines"] = dict(lines, **after["lines"])
        elif kind == "profile" and record["profile"] is None:
            after["profile"] = before
    return after


def recorded_after(record, wanted, problems):
    """Return the record once all is done: what is no longer wanted has been put back, except for what failed.

    Programs that failed are run again, but grubby's: its arguments are a step again as long as they are recorded.
    """
    failed = {one["subject"] for one in problems}
    commands = [one["detail"]["command"] for one in problems if one["code"] == "command_failed"]
    kept = {
        "files": {one["path"] for one in wanted["files"]},
        "values": {one["path"] for one in wanted["values"]},
    }
    after = dict(record)
    for part, paths in kept.items():
        after[part] = {path: was for path, was in record[part].items() if path in paths or path in failed}
    after["commands"] = [command for command in commands if command[0] != "grubby"]
    if after["commands"] == commands:
        after["arguments"] = {one: had for one, had in record["arguments"].items() if one in wanted["arguments"]}
        after["lines"] = record["lines"] if after["arguments"] else {}
    after["profile"] = record["profile"] if wanted["profile"] or after["commands"] else None
    return after


def commands_after(steps, profile_directory):
    """Return the programs that bring changed files into use, in their order."""
    paths = [step["subject"] for step in steps if step["kind"] == "file"]
    found = []
    if any(path.startswith("/etc/systemd/system/") for path in paths):
        found.append(["systemctl", "daemon-reload"])
    if any(path.startswith(("/etc/systemd/system.conf.d/", "/etc/systemd/user.conf.d/")) for path in paths):
        found.append(["systemctl", "daemon-reexec"])
    if logind.DROP_IN in paths:
        found.append(logind.RELOAD)
    if any(path.startswith("/etc/default/grub.d/") for path in paths):
        found.append(["update-grub"])
    ours = [path for path in paths if path.startswith(profile_directory + "/")]
    if ours and not any(step["kind"] == "profile" for step in steps):
        found.append(["tuned-adm", "profile", profile_directory.rpartition("/")[2]])
    return found


def diffs(steps):
    """Return the differences that Ansible shows with ``--diff``: each file by itself, all that is not a file together."""
    shown = []
    for step in steps:
        if step["kind"] == "file":
            texts = [_text(step[side]) for side in ("before", "after")]
            shown.append(_diff(step["subject"], *texts))
    rest = [step for step in steps if step["kind"] != "file"]
    if rest:
        lines = [
            "".join("%s: %s\n" % (step["subject"], _word(step[side])) for step in rest) for side in ("before", "after")
        ]
        shown.append(_diff("kernel", *lines))
    return shown


def _diff(header, before, after):
    return {"before_header": header, "after_header": header, "before": before, "after": after}


def _text(entry):
    if entry is None:
        return ""
    return kept_files.readable("-> %s\n" % entry["link"] if "link" in entry else entry["content"])


def _word(value):
    if isinstance(value, dict):
        return value["profile"] or "no profile"
    return "absent" if value is None else value
