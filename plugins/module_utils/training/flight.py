# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Dumps of PyTorch's flight recorder: which collectives each rank has begun and ended last.

A dump is a pickle of plain values (torch/csrc/distributed/c10d/FlightRecorder.hpp, versions 2.x), in a file that the training user
may have written as he likes: what would call anything is refused. So is what takes long: a few hundred bytes can be a list whose parts
are lists of each other, endless to follow or to hash. Reading ends after a fixed number of steps, keys are text, and nothing here
goes deeper than the writer does.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import io
import os
import pickle
import pickletools
import re

from ..machine.regular import IrregularError, open_regular

PREFIX = "flight-rank"
DUMP_FILE = re.compile(r"^%s(\d{1,6})$" % PREFIX)
LIMIT = 32 << 20  # bytes; 2,000 entries with their tracebacks are some MB
# Opcodes of one dump, of which 2,000 entries with 64 frames each have 1,700,000, and of all dumps of a node.
STEPS, ALL_STEPS = 4000000, 16000000
# Of the collectives of a group, those around the last one that was completed.
BEFORE, AFTER = 8, 24
GROUPS, ENTRIES, FRAMES, RANKS = (
    256,
    10000,
    64,
    1 << 17,
)  # at most: a user may write anything. RANKS: characters that name them
# What builds None, numbers, text, lists, tuples and dictionaries, and nothing that imports or calls.
PLAIN = frozenset(
    "PROTO FRAME STOP MARK NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT BINUNICODE SHORT_BINUNICODE EMPTY_DICT EMPTY_LIST"
    " EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 APPEND APPENDS SETITEM SETITEMS BINPUT LONG_BINPUT BINGET LONG_BINGET MEMOIZE".split()
)


CODES = {ord(opcode.code): opcode.name for opcode in pickletools.opcodes}


class DumpError(Exception):
    """The reason why a dump cannot be read."""


def collect(logs, uid, ranks):
    """Return {rank as text: groups} of the dumps that ranks wrote since they started, and {rank as text: why it cannot be read}.

    ranks: what run.ranks returned
    """
    started = {rank["rank"]: rank.get("started") for rank in ranks}
    found, errors, left = {}, {}, ALL_STEPS
    for name in sorted(os.listdir(logs)) if os.path.isdir(logs) else []:
        match = DUMP_FILE.match(name)
        number = int(match.group(1)) if match else None
        if number not in started:
            continue
        data, written = read_whole(os.path.join(logs, name), uid, LIMIT)
        # Ranks that were started again have dumps of their former lives.
        if data is None or written < (started[number] or 0) - 1:
            continue
        steps = Steps(min(STEPS, left))
        before = steps.left
        try:
            found[str(number)] = groups(load(data, steps))
        except DumpError as error:
            errors[str(number)] = str(error)[:200]
        left -= before - steps.left
    return found, errors


def read_whole(path, uid, limit):
    """Return (content, time of the last change); (None, 0) unless it is a regular file of UID with at most LIMIT bytes."""
    try:
        with open_regular(path, uid=uid) as stream:
            content = stream.read(limit + 1)
            return (content, os.fstat(stream.fileno()).st_mtime) if len(content) <= limit else (None, 0)
    except (OSError, IrregularError):
        return None, 0


class Steps:
    """The number of further steps that may be taken."""

    def __init__(self, left):
        self.left = left


def load(data, steps=None):
    """Return the value of a pickle of plain values; raise DumpError for anything else, and for one of more steps than are left."""
    try:
        return _Plain(data, steps or Steps(STEPS)).load()
    except DumpError:
        raise
    except Exception as error:  # pickle raises nearly anything for damaged data
        raise DumpError("%s: %s" % (type(error).__name__, error))


class _Table(dict):
    """The effect of each opcode; has the steps counted, and takes no other opcodes."""

    def __init__(self, steps):
        methods = pickle._Unpickler.dispatch
        super(_Table, self).__init__((code, methods[code]) for code, name in CODES.items() if name in PLAIN)
        self._steps = steps

    def __getitem__(self, code):
        self._steps.left -= 1
        if self._steps.left < 0:
            raise DumpError("it takes too many steps to read")
        return dict.__getitem__(self, code)

    def __missing__(self, code):
        raise DumpError("it has the opcode %s" % CODES.get(code, code))


class _Plain(pickle._Unpickler):
    """The reader that is written in Python, without the opcodes that import or call; its keys are text.

    Other keys can be made for a dictionary to take long: tuples of tuples to be hashed, numbers of one hash.
    """

    def __init__(self, data, steps):
        super(_Plain, self).__init__(io.BytesIO(data))
        self.dispatch = _Table(steps)
        self.dispatch.update({ord("s"): _Plain.set_item, ord("u"): _Plain.set_items})

    def find_class(self, module, name):
        raise DumpError("it names %s.%s" % (module, name))

    def set_item(self):
        self._check(self.stack[-2:-1])
        self.load_setitem()

    def set_items(self):
        self._check(self.stack[::2])
        self.load_setitems()

    @staticmethod
    def _check(keys):
        if not all(isinstance(key, str) for key in keys):
            raise DumpError("it has a key that is no text")


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
        group = found.setdefault(
            _text(named[0]), {"description": _text(named[1]), "id": _id(entry.get("pg_id")), "all": []}
        )
        group["all"].append(_collective(entry))
    return {name: _group(dump, name, found[name]) for name in list(found)[:GROUPS]}


def _group(dump, name, group):
    status = _dict(_dict(dump.get("pg_status")).get(group["id"]))
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
    short = isinstance(text, str) and len(text) <= RANKS
    match = re.match(r"^\[([0-9]{1,6}(, ?[0-9]{1,6})*)?\]$", text) if short else None
    return [int(number) for number in re.findall(r"\d+", text)] if match else None


def _id(value):
    """Return the name by which pg_status calls a group, which is numbered."""
    return str(value) if value is None or isinstance(value, (int, str)) else ""


def _dict(value):
    return value if isinstance(value, dict) else {}


def _list(value):
    return value if isinstance(value, (list, tuple)) else []


def _number(value, default):
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and abs(value) < 1 << 63 else default


def _text(value):
    """Return text as it may be shown on a terminal."""
    return re.sub(r"[^ -~]", "?", value[:200]) if isinstance(value, str) else ""
