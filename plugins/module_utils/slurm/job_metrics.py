# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The job of each GPU, as a metric of value 1 to join with those of the GPUs: a job's number as a label of each would multiply them.

The prolog adds a job, the epilog takes it away, and HealthCheckProgram those whose epilog never ran, as after a power cut.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import time

from ..health.metrics import labelled
from ..health.state import keep
from ..machine.files import replace
from ..machine.procfs import read_gpus
from . import kept, leftovers

JOBS, TEXTFILE, METRIC = "slurm_jobs.json", "allreduce_slurm.prom", "allreduce_slurm_job_info"
LABELS = ("slurm_job", "user", "device", "UUID")
HEAD = "# HELP %s 1 for each GPU of a job that runs.\n# TYPE %s gauge\n" % (METRIC, METRIC)
# Seconds until a job that began has a process of Slurm's.
BEGINNING = 300


def begin(places, options, environment):
    """Add the job that begins."""
    job = {
        "user": environment.get("SLURM_JOB_USER") or environment.get("SLURM_JOB_UID") or "",
        "gpus": leftovers.minors(environment.get("SLURM_JOB_GPUS")),
        "began": time.time(),
    }
    change(places, options, lambda jobs: dict(jobs, **{environment["SLURM_JOB_ID"]: job}) if job["gpus"] else jobs)


def end(places, options, environment):
    """Take the job away that ended."""
    change(places, options, lambda jobs: {name: jobs[name] for name in jobs if name != environment["SLURM_JOB_ID"]})


def forget_lost(places, options, dummy):
    """Take the jobs away that no process of Slurm's is there for."""
    alive, now = leftovers.jobs_here(places.proc), time.time()
    change(places, options, lambda jobs: {
        name: one for name, one in jobs.items() if name in alive or 0 <= now - one["began"] < BEGINNING})  # fmt: skip


def change(places, options, changed):
    """Change which jobs are known and write the metric; a directory that is not there has no reader."""
    directory = options["textfile_directory"]
    if not directory or not os.path.isdir(directory):
        return
    with kept.locked(places.directory, JOBS):
        known = kept.load(places.directory, JOBS, {})
        jobs = changed(known)
        if jobs != known:
            keep(os.path.join(places.directory, JOBS), jobs)
            uuids = {one["minor_number"]: one["uuid"] for one in read_gpus(places.proc).values()}
            replace(os.path.join(directory, TEXTFILE), text(jobs, uuids))


def text(jobs, uuids):
    """Return the metric of all jobs. uuids: minor number of a GPU -> its UUID"""
    lines = [
        "%s%s 1" % (METRIC, labelled(LABELS, (name, jobs[name]["user"], "nvidia%d" % minor, uuids.get(minor) or "")))
        for name in sorted(jobs, key=lambda one: (len(one), one))
        for minor in sorted(jobs[name]["gpus"])
    ]
    return HEAD + "".join(line + "\n" for line in lines)
