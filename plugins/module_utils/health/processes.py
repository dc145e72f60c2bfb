# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find processes that hold a GPU's memory and belong to nothing that runs: they have ended, or their login session has."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import errno
import os
import re
import time

from ..machine.topology import gpu_label
from .findings import fault, judged, no_answer, number_of

CHECK, EXPECTED = "stale_processes", "none that is left over"
# NVML names processes as the machine's first PID namespace numbers them: PROC_PID_INIT_INO of include/linux/proc_ns.h.
FIRST_NAMESPACE = "pid:[4026531836]"
ZOMBIE = r"(?m)^State:\s+Z"
SCOPE = r"(?m)/session-(\w+)\.scope(?:/|$)"
# systemd's logind keeps a file for each session (src/login/logind-session.c); one that is closing has ended and left processes behind.
SESSIONS = "/run/systemd/sessions"
CLOSING = r"(?m)^STATE=closing$"
# Meant to outlive the session that started it (https://docs.nvidia.com/deploy/mps): the name is cut after 15 letters.
MPS = "nvidia-cuda-mps"
SECONDS = 1


def read_processes(read, proc_tree, tree, seconds=SECONDS):
    """Return (counters, {pid: running, ended or logged_out}); None for the processes where their numbers mean nothing.

    ``read``: a function that gives the counters. It is asked again after some seconds where a process has ended: one that just
    ended is told by NVML a moment longer.
    """
    counters = read()
    states = read_states(counters, proc_tree, tree)
    if "ended" in (states or {}).values():
        time.sleep(seconds)
        counters = read()
        states = read_states(counters, proc_tree, tree)
    return counters, states


def read_states(counters, proc_tree, tree):
    if proc_tree.link("/self/ns/pid") != FIRST_NAMESPACE:
        return None
    found = [one["pid"] for gpu in counters.values() for one in gpu.get("processes") or []]
    return {pid: read_state(pid, proc_tree, tree) for pid in found}


def read_state(pid, proc_tree, tree):
    """Return the state of a process; a zombie that has living threads is running."""
    place = "/%d" % pid
    if not proc_tree.exists(place):
        return "running" if proc_tree.root == "/proc" and is_hidden(pid) else "ended"
    if re.search(ZOMBIE, proc_tree.text(place + "/status") or "") and len(proc_tree.names(place + "/task")) < 2:
        return "ended"
    scope = re.search(SCOPE, proc_tree.text(place + "/cgroup") or "")
    if scope and proc_tree.text(place + "/comm") != MPS and has_ended(tree, scope.group(1)):
        return "logged_out"
    return "running"


def is_hidden(pid):
    """Return True if a process that procfs does not show runs: with hidepid=2 that shows those of others to few (proc(5))."""
    try:
        os.kill(pid, 0)
    except OSError as error:
        return error.errno == errno.EPERM
    return True


def has_ended(tree, session):
    """Return True if a login session has ended; where there is no logind that is not known, and it counts as not ended."""
    known = tree.text("%s/%s" % (SESSIONS, session))
    return bool(re.search(CLOSING, known)) if known is not None else tree.is_directory(SESSIONS)


def stale_processes(gpus, states):
    """Judge [(gpu, counters)] by what read_processes gave."""
    if states is None:
        return []
    known, found = [], []
    for gpu, counters in gpus:
        name = gpu_label(gpu)
        refused = no_answer(CHECK, EXPECTED, name, counters, "DeviceGetComputeRunningProcesses_v3")
        found += [refused] if refused else []
        known += [gpu] if counters.get("processes") is not None else []
        for one in counters.get("processes") or []:
            if states.get(one["pid"]) in ("ended", "logged_out"):
                text = "process %d with %d MiB" % (one["pid"], one["memory_mib"])
                found.append(fault(CHECK, states[one["pid"]], EXPECTED, text, name))
    return [judged(CHECK, EXPECTED, "none on %s" % number_of(known), found)] if known or found else []
