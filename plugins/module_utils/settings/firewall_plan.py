# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps from what a node has to what is wanted, and the record of what was there before. Pure.

A step is {``kind``: file, value, rules, service or confirmation, ``subject``, ``before``, ``after``}.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json

from ..host.kept_files import readable

FORMAT = 1
NOTHING = {"owner": None, "files": (), "values": (), "disabled": False}


def empty():
    """Return the record of a node that nothing was changed on."""
    return {"format": FORMAT, "files": {}, "values": {}, "services": {}, "directories": [], "pending": False}


def parse(text, path):
    """Return a record or a snapshot; raise ValueError for one that is not ours to understand."""
    record = json.loads(text)
    if record.get("format") != FORMAT:
        raise ValueError("%s has format %s; this release reads %d" % (path, record.get("format"), FORMAT))
    return record


def dump(record):
    """Return the text of a record."""
    return json.dumps(record, indent=1, sort_keys=True) + "\n"


def file_steps(wanted, record, found):
    """Return the steps to the files. found: {path: entry} of all wanted and recorded ones; see kept_files.read."""
    targets = dict(record["files"])
    targets.update((one["path"], _entry(one)) for one in wanted)
    return [
        {"kind": "file", "subject": path, "before": found[path], "after": targets[path]}
        for path in sorted(targets)
        if not same(targets[path], found[path])
    ]


def _entry(one):
    """Return the wanted content of a file: {content, mode} or {link}."""
    return {key: one[key] for key in ("content", "mode", "link") if one.get(key) is not None}


def same(target, found):
    """Return True if a file is as wanted; who owns it counts only where it was recorded."""
    if target is None or found is None:
        return target is found
    return all(found.get(key) == value for key, value in target.items()) and ("link" in found) == ("link" in target)


def value_steps(wanted, record, found):
    """Return the steps to the values. found: {path: text}, None for what the kernel does not have."""
    targets = dict(record["values"])
    targets.update((one["path"], one["value"]) for one in wanted)
    return [
        {"kind": "value", "subject": path, "before": found[path], "after": targets[path]}
        for path in sorted(targets)
        if found[path] is not None and found[path] != targets[path]
    ]


def service_steps(stopped, record, found):
    """Return the steps to services. stopped: names; found: {name: {enabled, active}} of those and the recorded ones."""
    targets = {name: was for name, was in record["services"].items() if name not in stopped}
    targets.update((name, {"enabled": False, "active": False}) for name in stopped)
    return [
        {"kind": "service", "subject": name, "before": found[name], "after": targets[name]}
        for name in sorted(targets)
        if found[name] != targets[name]
    ]


def recorded_before(record, steps, kept, directories):
    """Return the record before the steps are taken: what they change for the first time is added.

    kept: files of others that we add lines to, which are taken out again, so that what others write there stays. pending: until the
    last step is taken, so that a run after one that was killed has the files read, and ends the record.
    """
    after = {part: dict(record[part]) for part in ("files", "values", "services")}
    for step in steps:
        part = step["kind"] + "s"
        if part in after and step["subject"] not in kept:
            after[part].setdefault(step["subject"], step["before"])
    return dict(record, directories=sorted(set(record["directories"]) | set(directories)), pending=True, **after)


def recorded_after(record, wanted, stopped):
    """Return the record once all is done: what is wanted no more has been put back."""
    kept = {
        "files": {one["path"] for one in wanted["files"]},
        "values": {one["path"] for one in wanted["values"]},
        "services": set(stopped),
    }
    after = {part: {key: was for key, was in record[part].items() if key in kept[part]} for part in kept}
    return dict(record, pending=False, **after)


def is_empty(record):
    """Return True if nothing is left that could be put back."""
    return not any(record[part] for part in ("files", "values", "services"))


def snapshot(steps, older, record, record_path):
    """Return the state of a node before this run. older: a snapshot that no one has confirmed, which has the last word."""
    found = {"files": {record_path: record}, "values": {}, "services": {}}
    for step in steps:
        part = step["kind"] + "s"
        if part in found:
            found[part][step["subject"]] = step["before"]
    for part in found:
        found[part].update((older or {}).get(part, {}))
    return dict(found, format=FORMAT)


def diffs(steps):
    """Return the differences that Ansible shows with ``--diff``: each file by itself, all that is not a file together."""
    shown = []
    for step in steps:
        if step["kind"] == "file":
            shown.append(_diff(step["subject"], _text(step["before"]), _text(step["after"])))
    rest = [step for step in steps if step["kind"] != "file"]
    if rest:
        texts = [
            "".join("%s: %s\n" % (one["subject"], _word(one[side])) for one in rest) for side in ("before", "after")
        ]
        shown.append(_diff("running", *texts))
    return shown


def _diff(header, before, after):
    return {"before_header": header, "after_header": header, "before": before, "after": after}


def _text(entry):
    if entry is None:
        return ""
    return readable("-> %s\n" % entry["link"] if "link" in entry else entry["content"])


def _word(value):
    if isinstance(value, dict):
        return "%s, %s" % ("enabled" if value["enabled"] else "disabled", "active" if value["active"] else "stopped")
    return "absent" if value is None else value
