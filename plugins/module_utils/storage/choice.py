# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Choose the disks of a scratch: those that are ours already, or blank ones."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..machine.problems import problem
from . import record as records
from .blank import sightings
from .tables import bare_uuid


def choose(wanted, seen, record):
    """Return {``disks``, ``blank``: whether they are, ``left``: why there is none, ``seen``: sightings, ``problems``}."""
    if record is None:
        return _new(wanted, seen)
    ours = [disk for disk in seen["disks"] if is_ours(disk, record)]
    if len(ours) == len(record["disks"]):
        return _choice(ours, blank=False)
    if ours:
        names = [one["device"] for one in ours]
        detail = {"found": names, "expected": [_kind(one) for one in record["disks"]]}
        return _choice([], problems=[problem("members_missing", wanted["mount_point"], **detail)])
    return _again(wanted, seen, record)


def is_ours(disk, record):
    """Return True if a disk carries the array, or the file system, that the record names."""
    kind, uuid = "xfs", record["filesystem"]
    if record["array"]:
        kind, uuid = "linux_raid_member", record["array"]["uuid"]
    return any(one["type"] == kind and bare_uuid(one["uuid"]) == bare_uuid(uuid) for one in disk["signatures"] or [])


def candidates(wanted, seen):
    """Return (blank disks, sightings on the others, problems) of those that are named, else of all local NVMe disks."""
    if wanted["disks"]:
        names = [seen["named"][path] for path in wanted["disks"]]
        missing = [path for path in wanted["disks"] if seen["named"][path] is None]
        found = [problem("no_disk", path) for path in missing]
        found += [
            problem("named_twice", "/dev/" + one) for one in sorted({n for n in names if n and names.count(n) > 1})
        ]
        pool = [disk for disk in seen["disks"] if disk["name"] in names]
        strange = [name for name in names if name and name not in {disk["name"] for disk in pool}]
        found += [problem("no_disk", "/dev/" + name) for name in strange]
    else:
        pool, found = [disk for disk in seen["disks"] if disk["kind"] == "nvme" and not seen["container"]], []
    judged = [(disk, sightings(disk, seen["disks"])) for disk in pool]
    others = [one for dummy, against in judged for one in against]
    return [disk for disk, against in judged if not against], others, found


def _new(wanted, seen):
    blank, others, problems = candidates(wanted, seen)
    if problems or (wanted["disks"] and others):
        return _choice([], problems=problems + others)
    if not blank and not wanted["count"]:
        return _choice([], left="container" if seen["container"] else "none_blank", others=others)
    problems = _judge(wanted, blank)
    return _choice([] if problems else blank, problems=problems + (others if problems else []), others=others)


def _judge(wanted, disks):
    """Return the problems of blank disks taken together."""
    where, found = wanted["mount_point"], []
    if wanted["count"] and len(disks) != wanted["count"]:
        found.append(problem("count_differs", where, found=[_kind(one) for one in disks], expected=wanted["count"]))
    if len({one["size"] for one in disks}) > 1:
        found.append(problem("sizes_differ", where, found=[_kind(one) for one in disks]))
    total = sum(one["size"] for one in disks)
    if total < wanted["minimum"]:
        found.append(problem("too_small", where, found=total, expected=wanted["minimum"]))
    return found


def _again(wanted, seen, record):
    """Choose again where nothing of what was recorded is left, as after a cloud has stopped and started an instance."""
    blank, others, problems = candidates(wanted, seen)
    if not problems and not (wanted["disks"] and others) and records.fits(record, blank):
        return _choice(blank)
    detail = {"found": [_kind(one) for one in blank], "expected": [_kind(one) for one in record["disks"]]}
    misfit = problem("record_does_not_fit", wanted["mount_point"], **detail)
    return _choice([], problems=[misfit] + problems + others)


def _choice(disks, blank=True, left=None, problems=(), others=()):
    return {"disks": disks, "blank": blank, "left": left, "seen": list(others), "problems": list(problems)}


def _kind(disk):
    return "%s of %d bytes" % (disk["model"] or "a disk", disk["size"])
