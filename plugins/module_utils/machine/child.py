# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run what may crash or hang in a child process, so that either is an answer."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import os
import resource
import select
import signal
import time

# Seconds that a killed child may take to go; one that waits for a device in the kernel is left behind.
GRACE = 2


def bounded(work, seconds):
    """Run ``work(say)`` for at most the given seconds; return ([what it said], how it ended).

    say takes a plain value, which arrives also when the child crashes after it. How it ended: ``done``, ``failed`` (an
    exception), ``timeout``, or ``signal NUMBER``.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _work(work, reading, writing)
    os.close(writing)
    text, in_time = _read(reading, time.monotonic() + seconds)
    os.close(reading)
    if not in_time:
        os.kill(child, signal.SIGKILL)
    status = _wait(child, time.monotonic() + GRACE)
    said = [json.loads(line) for line in text.decode("utf-8").split("\n")[:-1]]
    return said, _ending(status) if in_time else "timeout"


def _work(work, reading, writing):
    """Do the work in the child, which prints nothing and leaves no dump of its memory, and end it."""
    code = 1
    try:
        # One that hangs outlives its parent, whose locks would stay locked otherwise, and its own answer not end.
        # Open ones alone: a service may be allowed a thousand million of them.
        for number in {int(name) for name in os.listdir("/proc/self/fd")} - {0, 1, 2, writing}:
            os.closerange(number, number + 1)  # an error, as of the one that the list was read from, is ignored
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        if nowhere > 2:
            os.close(nowhere)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        work(lambda value: os.write(writing, (json.dumps(value) + "\n").encode("utf-8")))
        code = 0
    finally:
        os._exit(code)


def _read(handle, deadline):
    """Return (all bytes, whether the other end was closed before the deadline)."""
    text = b""
    while True:
        ready = select.select([handle], [], [], max(deadline - time.monotonic(), 0))[0]
        if not ready:
            return text, False
        part = os.read(handle, 65536)
        if not part:
            return text, True
        text += part


def _wait(child, deadline):
    """Return the child's status; None where it does not go."""
    while True:
        gone, status = os.waitpid(child, os.WNOHANG)
        if gone:
            return status
        if time.monotonic() > deadline:
            return None
        time.sleep(0.01)


def _ending(status):
    if status is None:
        return "timeout"
    if os.WIFSIGNALED(status):
        return "signal %d" % os.WTERMSIG(status)
    return "done" if os.WEXITSTATUS(status) == 0 else "failed"
