# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what is wanted of a node's ports, what they have and what was recorded to the steps. Pure.

wanted: {``files``: [{path, content, mode} or {path, link}], ``values``: [{path, value}], ``modules``: [name],
``ports``: [{interface, apps: {DSCP: priority}, pfc: [priority], ets: {tsa, bandwidth, classes} or None}]}.
A part of a port is ``INTERFACE/dscp/NUMBER``, ``INTERFACE/ets`` or ``INTERFACE/pfc``, and steps go in this order: the last one
may take the link down. What was recorded and is wanted no more is put back.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..host.dcb import PRIORITIES

NOTHING = {"files": (), "values": (), "modules": (), "ports": ()}
FORMAT = 1
RANK = ("dscp", "ets", "pfc")
# Have systemd and udev read their files again.
READ = (["systemctl", "daemon-reload"], ["udevadm", "control", "--reload"])


def empty():
    """Return the record of a node that nothing was changed on."""
    return {
        "format": FORMAT, "files": {}, "values": {}, "modules": [], "ports": {}, "directories": [], "pending": False,
    }  # fmt: skip


def is_empty(record):
    return not any(record[part] for part in ("files", "values", "modules", "ports")) and not record.get("pending")


def targets(ports, recorded):
    """Return {part: its wanted value}; an application entry to remove is None."""
    found = dict(recorded)
    for port in ports:
        for dscp, priority in port["apps"].items():
            found["%s/dscp/%s" % (port["interface"], dscp)] = priority
        found["%s/pfc" % port["interface"]] = sorted(port["pfc"])
        if port.get("ets"):
            found["%s/ets" % port["interface"]] = effective(port["ets"])
    return found


def interfaces(parts):
    """Return the names of the interfaces of these parts, sorted."""
    return sorted({part.split("/")[0] for part in parts})


def effective(ets):
    """Return ets with no bandwidth for classes that are not served by it; drivers show anything there."""
    shares = [share if tsa == "ets" else 0 for share, tsa in zip(ets["bandwidth"], ets["tsa"])]
    return {"tsa": list(ets["tsa"]), "bandwidth": shares, "classes": list(ets["classes"])}


def has(reading, part):
    """Return True if the port has this kind of part at all. reading: of dcb.read_port, None where the interface is gone."""
    kind = part.split("/")[1]
    return bool(reading) and reading[{"dscp": "apps", "pfc": "pfc", "ets": "ets"}[kind]] is not None


def current(reading, part):
    """Return the current value of a part."""
    words = part.split("/")
    if words[1] == "dscp":
        return reading["apps"].get(words[2])
    return reading["pfc"] if words[1] == "pfc" else effective(reading["ets"])


def port_steps(wanted, readings):
    """Return steps to the parts that differ. wanted: as targets returns; readings: {interface: of dcb.read_port}."""
    steps = []
    for part in sorted(wanted, key=lambda one: (RANK.index(one.split("/")[1]), one)):
        reading = readings.get(part.split("/")[0])
        if has(reading, part) and current(reading, part) != wanted[part]:
            before = current(reading, part)
            steps.append({"kind": "port", "subject": part, "before": before, "after": wanted[part]})
    return steps


def command(step):
    """Return the program that takes a step of a port."""
    words, after = step["subject"].split("/"), step["after"]
    device = ["dev", words[0]]
    if words[1] == "dscp":
        what, priority = ("del", step["before"]) if after is None else ("replace", after)
        return ["dcb", "app", what] + device + ["dscp-prio", "%s:%d" % (words[2], priority)]
    if words[1] == "pfc":
        return ["dcb", "pfc", "set"] + device + ["prio-pfc", "all:off"] + ["%d:on" % one for one in after]
    numbered = [("tc-tsa", "tsa"), ("tc-bw", "bandwidth"), ("prio-tc", "classes")]
    arguments = ["dcb", "ets", "set"] + device
    for name, key in numbered:
        arguments += [name] + ["%d:%s" % pair for pair in zip(PRIORITIES, after[key])]
    return arguments


def recorded_before(record, steps, directories):
    """Return the record before the steps are taken: what they change for the first time is added.

    pending: until they are taken, so that a run after one that was killed has the files read, and ends the record.
    """
    after = dict(record, directories=sorted(set(record["directories"]) | set(directories)), pending=True)
    for part in ("files", "values", "ports"):
        after[part] = dict(record[part])
    for step in steps:
        if step["kind"] == "module":
            after["modules"] = sorted(set(after["modules"]) | {step["subject"]})
        elif step["kind"] in ("file", "value", "port"):
            after[step["kind"] + "s"].setdefault(step["subject"], step["before"])
    return after


def recorded_after(record, wanted, problems):
    """Return the record once all is done: what is no longer wanted has been put back, except for what failed."""
    failed = {one["subject"] for one in problems}
    kept = {
        "files": {one["path"] for one in wanted["files"]},
        "values": {one["path"] for one in wanted["values"]},
        "ports": set(targets(wanted["ports"], {})),
    }
    after = dict(record, pending=any(one["detail"].get("command") in READ for one in problems))
    for part, names in kept.items():
        after[part] = {name: was for name, was in record[part].items() if name in names or name in failed}
    after["modules"] = [name for name in record["modules"] if name in wanted["modules"] or name in failed]
    return after


def words(value):
    """Return the value of a part of a port, for people."""
    if value is None:
        return "none"
    if isinstance(value, dict):
        return "; ".join("%s %s" % (key, " ".join(map(str, value[key]))) for key in ("tsa", "bandwidth", "classes"))
    return " ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
