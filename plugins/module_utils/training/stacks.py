# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask running ranks for the stacks of their Python threads (launch/node/sitecustomize.py writes them on a signal).

The file is the training user's, and so is the number in it: the signal is sent with that user's rights, and only to a process that
handles it, as it would end any other.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import pwd
import re
import signal
import time

from ..host.as_user import as_user
from ..machine.regular import IrregularError, open_regular

SIGNAL = signal.SIGRTMIN + 9
SECONDS = 2.0  # in which all ranks of a node have written
LONGEST = 65536  # bytes of all stacks of a rank
FRAMES = 30
_FRAME = re.compile(r'^  File "(.*)", line (\d+|\?\?\?) in (.*)$')


def stacks(logs, uid, ranks):
    """Return {rank: [frames of its main thread, the innermost first, as `file:line function`]} of those that answer."""
    try:
        name = pwd.getpwuid(uid).pw_name
        texts = as_user(name, lambda: _ask(logs, ranks), 10 * SECONDS)
    except (EnvironmentError, KeyError, ValueError):
        return {}
    return {rank: frames(texts[str(rank)]) for rank in ranks if texts.get(str(rank))}


def frames(text):
    """Return the frames of the thread that took the signal, which is the main one."""
    blocks = [block for block in re.split(r"\n\s*\n", text) if _FRAME.search(block) or 'File "' in block]
    block = next((one for one in blocks if "Current thread" in one), blocks[-1] if blocks else "")
    found = [_FRAME.match(line) for line in block.splitlines()]
    return ["%s:%s %s" % one.groups() for one in found if one][:FRAMES]


def _ask(logs, ranks):
    """Return {rank as text: what it wrote}; runs as the user."""
    paths = {str(rank): os.path.join(logs, "rank%d.stack" % rank) for rank in ranks}
    before = {rank: _signal(path) for rank, path in paths.items()}
    waiting = {rank for rank, size in before.items() if size}
    until, found = time.monotonic() + SECONDS, {}
    while waiting and time.monotonic() < until:
        time.sleep(0.2)
        for rank in list(waiting):
            text = _read(paths[rank], before[rank])
            # The last thread that is written is the main one; a file that still grows is read once more.
            if text and text == found.get(rank):
                waiting.discard(rank)
            found[rank] = text
    return found


def _signal(path):
    """Send the signal; return the size of the file before, 0 where no process takes it."""
    try:
        with open_regular(path) as stream:
            size, pid = os.fstat(stream.fileno()).st_size, int(stream.readline(20))
        if pid > 1 and _handles(pid):
            os.kill(pid, SIGNAL)
            return size
    except (EnvironmentError, ValueError, IrregularError):
        pass
    return 0


def _handles(pid):
    """Return True if a process catches the signal."""
    with open("/proc/%d/status" % pid) as stream:
        caught = re.search(r"^SigCgt:\s*([0-9a-f]+)$", stream.read(), re.M)
    return bool(caught and int(caught.group(1), 16) >> (SIGNAL - 1) & 1)


def _read(path, start):
    try:
        with open_regular(path) as stream:
            stream.seek(start)
            return stream.read(LONGEST).decode("utf-8", "replace")
    except (EnvironmentError, IrregularError):
        return ""
