# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leftovers of a job on its GPUs: processes of its user that hold their device files, and memory that no process accounts for."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import re
import signal
import time

from ..health.samples import read_memory
from ..machine.child import bounded
from ..machine.nvml import DEFAULT_LIBRARY, open_nvml

# Seconds: until a killed process has gone and its memory is free; and for the driver to answer.
GRACE, ANSWER = 10, 10
# MiB of a GPU that are in use without a process: a driver without nvmlMemory_v2_t counts what it reserves for itself.
IDLE_MIB = 1024
MIB = 1024 * 1024
# slurmstepd(8) has the job in its title: "slurmstepd: [123.batch]".
_STEP = re.compile(r"^slurmstepd: \[(\d+)\.")


def minors(text):
    """Return the minor numbers of a job's GPUs, as SLURM_JOB_GPUS has them; none of MIG instances, which have names there."""
    return [int(part) for part in (text or "").split(",") if part.isdigit()]


def devices(numbers, dev="/dev"):
    """Return {device number of a GPU's device file: minor number}."""
    found = {}
    for number in numbers:
        try:
            found[os.stat("%s/nvidia%d" % (dev, number)).st_rdev] = number
        except EnvironmentError:
            pass
    return found


def holders(proc, uid, wanted):
    """Return [(pid, start)] of a user's processes that have one of these device files open."""
    found = []
    for pid in (int(name) for name in proc.names("/") if name.isdigit()):
        if pid != os.getpid() and user_of(proc, pid) == uid and wanted & set(open_devices(proc, pid)):
            found.append((pid, start_of(proc, pid)))
    return [one for one in found if one[1]]


def user_of(proc, pid):
    found = re.search(r"(?m)^Uid:\s+(\d+)", proc.text("/%d/status" % pid) or "")
    return int(found.group(1)) if found else None


def fields_of(proc, pid):
    """Return the fields of a process after its name (proc_pid_stat(5)): the state is the first."""
    return (proc.text("/%d/stat" % pid) or "").rpartition(")")[2].split()


def start_of(proc, pid):
    """Return when a process started, in ticks since boot; None where it is gone."""
    fields = fields_of(proc, pid)
    return fields[19] if len(fields) > 19 and fields[0] not in ("Z", "X") else None


def open_devices(proc, pid):
    for name in proc.names("/%d/fd" % pid):
        try:
            yield os.stat(proc.path("/%d/fd/%s" % (pid, name))).st_rdev
        except EnvironmentError:
            pass


def jobs_of(proc, uid):
    """Return the jobs that run on the node with a process of this user below them."""
    found = set()
    for pid in (int(name) for name in proc.names("/") if name.isdigit()):
        if user_of(proc, pid) == uid:
            found.add(job_of(proc, pid))
    return found - {None}


def jobs_here(proc):
    """Return the jobs that a process of Slurm's is there for."""
    found = set()
    for pid in (int(name) for name in proc.names("/") if name.isdigit()):
        step = step_of(proc, pid)
        if step:
            found.add(step)
    return found


def step_of(proc, pid):
    """Return the number of the job whose step a process starts; None of another process. Who is not root makes no step."""
    step = _STEP.match((proc.text("/%d/cmdline" % pid) or "").replace("\0", " "))
    return step.group(1) if step and user_of(proc, pid) == 0 else None


def job_of(proc, pid):
    """Return the number of the job whose step a process is below; None of one that has left all."""
    seen = set()
    while pid > 1 and pid not in seen:
        step = step_of(proc, pid)
        if step:
            return step
        seen.add(pid)
        fields = fields_of(proc, pid)
        pid = int(fields[1]) if len(fields) > 1 else 0
    return None


def is_left_by(proc, pid, job, others):
    """Return True if a process is one that the job left: of one that left its step, only while no other job of the user runs here."""
    below = job_of(proc, pid)
    if below is not None:
        return below == job
    said = (proc.text("/%d/environ" % pid) or "").split("\0")
    return not others or "SLURM_JOB_ID=%s" % job in said


def left_by(proc, job, uid, wanted):
    """Return the processes that a job left on these devices; a job of root's leaves none, since services are root's."""
    if not uid or not wanted:
        return []
    others = jobs_of(proc, uid) - {job}
    return [one for one in holders(proc, uid, wanted) if is_left_by(proc, one[0], job, others)]


def clear(proc, found, kill=os.kill, seconds=GRACE):
    """Kill processes; return those that are still there after a while."""
    for pid, start in found:
        try:
            if start_of(proc, pid) == start:
                kill(pid, signal.SIGKILL)
        except EnvironmentError:
            pass
    return wait(lambda: remaining(proc, found), seconds)


def remaining(proc, found):
    """Return those of the processes that still run."""
    return [(pid, start) for pid, start in found if start_of(proc, pid) == start]


def wait(look, seconds):
    """Return the findings that a question still has after some seconds, at once where it finds nothing."""
    end = time.monotonic() + seconds
    while True:
        found = look()
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.2)


def unaccounted(numbers, library=DEFAULT_LIBRARY, opener=open_nvml):
    """Return the minor numbers of those GPUs whose memory is in use without a process; none where the driver does not answer."""
    said, ending = bounded(lambda say: say(read_unaccounted(numbers, library, opener)), ANSWER)
    return said[0] if ending == "done" and said else []


def read_unaccounted(numbers, library, opener=open_nvml):
    found = []
    with opener(library) as (nvml, dummy):
        for index in range(nvml.call("DeviceGetCount") or 0 if nvml else 0):
            handle = nvml.call("DeviceGetHandleByIndex", index)
            minor = nvml.call("DeviceGetMinorNumber", handle) if handle is not None else None
            if minor in numbers and is_unaccounted(nvml, handle):
                found.append(minor)
    return found


def is_unaccounted(nvml, handle):
    """Return True if more memory is in use than processes have; not of a GPU that is cut into instances, or does not tell."""
    mig = nvml.call("DeviceGetMigMode", handle)
    memory = read_memory(nvml, handle)
    lists = [nvml.call("DeviceGet%sRunningProcesses_v3" % kind, handle) for kind in ("Compute", "Graphics")]
    told = [one.usedGpuMemory for some in lists if some for one in some]
    if (mig and mig[0]) or not memory or lists[0] is None or None in told:
        return False
    return (memory.used - sum(told)) // MIB > IDLE_MIB
