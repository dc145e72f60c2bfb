# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask the kernel how far its clock is off, as the service that keeps the time has told it."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import ctypes
import json

# Of a recorded machine, below procfs: what adjtimex said of it.
RECORDED = "/adjtimex.json"
UNSYNCHRONISED, NANOSECONDS = 0x0040, 0x2000  # STA_UNSYNC, STA_NANO of linux/timex.h
ERROR = 5  # TIME_ERROR: not kept in time


class Timex(ctypes.Structure):
    """The beginning of struct timex (adjtimex(2)), with room for all of it."""

    _fields_ = [
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("frequency", ctypes.c_long),
        ("maximum_error", ctypes.c_long),
        ("estimated_error", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_long * 32),
    ]


def read_clock(proc_tree):
    """Return {``offset_seconds``, ``asked``: the answer}, the offset None of a clock that nothing keeps in time; {} where the kernel does not say."""
    recorded = proc_tree.root != "/proc"
    asked = recorded_answer(proc_tree) if recorded else ask()
    if asked is None:
        return {}
    if asked["state"] == ERROR or asked["status"] & UNSYNCHRONISED:
        return {"offset_seconds": None, "asked": asked}
    return {"offset_seconds": asked["offset"] * (1e-9 if asked["status"] & NANOSECONDS else 1e-6), "asked": asked}


def ask():
    """Return {state, status, offset} of adjtimex, which changes nothing without modes; None where it is not allowed."""
    answer = Timex()
    state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(answer))
    return None if state < 0 else {"state": state, "status": answer.status, "offset": answer.offset}


def recorded_answer(tree):
    text = tree.text(RECORDED)
    return json.loads(text) if text else None
