# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Dumps of PyTorch's flight recorder: which collectives each rank has begun and ended last.

A dump is a pickle of plain values (torch/csrc/distributed/c10d/FlightRecorder.hpp, versions 2.x), in a file that the training user
may have written as he likes: what would call anything is refused before it is read.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import io
import os
import pickle
import pickletools
import re
import stat

PREFIX = "flight-rank"
DUMP_FILE = re.compile(r"^%s(\d{1,6})$" % PREFIX)
LIMIT = 32 << 20  # bytes; 2,000 entries with their tracebacks are some MB
# Of the collectives of a group, those around the last one that was completed.
BEFORE, AFTER = 8, 24
GROUPS, ENTRIES, FRAMES = 256, 10000, 64  # at most: a user may write anything
# What builds None, numbers, text, lists, tuples and dictionaries, and nothing that imports or calls.
PLAIN = frozenset(
    "PROTO FRAME STOP MARK NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT BINUNICODE SHORT_BINUNICODE EMPTY_DICT EMPTY_LIST"
    " EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 APPEND APPENDS SETITEM SETITEMS BINPUT LONG_BINPUT BINGET LONG_BINGET MEMOIZE".split()
)


class DumpError(Exception):
    """The reason why a dump cannot be read."""


def collect(logs, uid, ranks):
    """Return {rank as text: groups} of the dumps that ranks wrote since they started; one that cannot be read is left out.

    ranks: what run.ranks returned
    """
    started = {rank["rank"]: rank.get("started") for rank in ranks}
    found = {}
    for name in os.listdir(logs) if os.path.isdir(logs) else []:
        match = DUMP_FILE.match(name)
        number = int(match.group(1)) if match else None
        if number not in started:
            continue
        data, written = read_whole(os.path.join(logs, name), uid, LIMIT)
        # Ranks that were started again have dumps of their former lives.
        if data is None or written < (started[number] or 0) - 1:
            continue
        try:
            found[str(number)] = groups(load(data))
        except DumpError:
            pass
    return found


def read_whole(path, uid, limit):
    """Return (content, time of the last change); (None, 0) unless it is a regular file of UID with at most LIMIT bytes."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None, 0
    with os.fdopen(handle, "rb") as stream:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != uid or status.st_size > limit:
            return None, 0
        return stream.read(limit), status.st_mtime


def load(data):
    """Return the value of a pickle of plain values; raise DumpError for anything else."""
    try:
        for opcode, argument, _place in pickletools.genops(data):
            if opcode.name not in PLAIN:
                raise DumpError("it has the opcode %s" % opcode.name)
            # The reader makes room for the largest place that is named.
            if opcode.name == "LONG_BINPUT" and argument > len(data):
                raise DumpError("it names place %d" % argument)
        return _Plain(io.BytesIO(data)).load()
    except DumpError:
        raise
    except Exception as error:  # pickle raises nearly anything for damaged data
        raise DumpError("%s: %s" % (type(error).__name__, error))


class _Plain(pickle.Unpickler):
    """A reader that imports nothing, should an opcode be missed."""

    def find_class(self, module, name):
        raise DumpError("it names %s.%s" % (module, name))


def groups(dump):
    """Return {name: {description, ranks, enqueued, completed, collectives}} of the process groups in a dump.

    ranks: None where the dump does not tell; enqueued, completed: the numbers of the last collectives that were begun and ended, 0 for
    none; collectives: [{sequence, operation, sizes, state, place, created}] around the last that was completed.
    """
    found = {}
    for entry in _list(_dict(dump).get("entries"))[-ENTRIES:]:
        entry = _dict(entry)
        named = entry.get("process_group")
        if entry.get("is_p2p") or not isinstance(named, (list, tuple)) or len(named) != 2:
            continue
        group = found.setdefault(_text(named[0]), {"description": _text(named[1]), "id": entry.get("pg_id"), "all": []})
        group["all"].append(_collective(entry))
    return {name: _group(dump, name, found[name]) for name in list(found)[:GROUPS]}


def _group(dump, name, group):
    status = _dict(_dict(dump.get("pg_status")).get(str(group["id"])))
    ended = [one["sequence"] for one in group["all"] if one["state"] == "completed"]
    begun = [one["sequence"] for one in group["all"]]
    completed = max(_number(status.get("last_completed_collective"), max(ended or [0])), 0)
    near = [one for one in group["all"] if completed - BEFORE < one["sequence"] <= completed + AFTER]
    return {
        "description": group["description"],
        "ranks": _ranks(_dict(_dict(dump.get("pg_config")).get(name)).get("ranks")),
        "enqueued": max([_number(status.get("last_enqueued_collective"), 0)] + begun),
        "completed": completed,
        "collectives": near[-(BEFORE + AFTER) :],
    }


def _collective(entry):
    return {
        "sequence": _number(entry.get("collective_seq_id"), 0),
        "operation": _text(entry.get("profiling_name")),
        "sizes": [[_number(size, 0) for size in _list(one)[:8]] for one in _list(entry.get("input_sizes"))[:4]],
        "state": _text(entry.get("state")),
        "place": _place(_list(entry.get("frames"))),
        "created": _number(entry.get("time_created_ns"), 0),
    }


def _place(frames):
    """Return `file:line` of the innermost frame outside PyTorch; "" where there is none."""
    for frame in frames[:FRAMES]:
        file = _text(_dict(frame).get("filename"))
        if file and "/torch/" not in file:
            return "%s:%d" % (os.path.basename(file), _number(_dict(frame).get("line"), 0))
    return ""


def _ranks(text):
    """Return the ranks of `[0, 1, 2]`."""
    match = re.match(r"^\[[\d, ]*\]$", text) if isinstance(text, str) else None
    return [int(number) for number in re.findall(r"\d+", text)] if match else None


def _dict(value):
    return value if isinstance(value, dict) else {}


def _list(value):
    return value if isinstance(value, (list, tuple)) else []


def _number(value, default):
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _text(value):
    """Return text as it may be shown on a terminal."""
    return re.sub(r"[^ -~]", "?", value[:200]) if isinstance(value, str) else ""
