# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs that Slurm starts on a node: ``check`` decides about the node, ``prolog`` and ``epilog`` answer by an exit code.

In shadow mode of role health they only tell what they would do. One that crashes says nothing about the node.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import sys
import syslog
import time
from collections import namedtuple

from ..health import program_options
from ..machine.files import FileTree
from ..machine.nvml import DEFAULT_LIBRARY, open_nvml
from . import decision, health_check, job_metrics, kept, leftovers

USAGE = "usage: slurm check NODE [DOCUMENT] | prolog | epilog"
# The one exit code that refuses the node; the scripts that start this program hand no other on.
REFUSED = 3
# Seconds that a job waits for the decision about a node that has just turned out to be broken.
UNDECIDED = 15
Places = namedtuple("Places", "declaration directory proc dev library opener")
HERE = Places(
    program_options.DECLARATION, program_options.DIRECTORY, FileTree("/proc"), "/dev", DEFAULT_LIBRARY, open_nvml
)


def main(arguments, places=HERE, environment=None, tell=None):
    """Run one of the programs; 0, or an exit code."""
    environment = os.environ if environment is None else environment
    tell = tell or syslog_as("-".join(["allreduce-slurm"] + arguments[:1]))
    try:
        options = read_options(places.declaration)
        if arguments[:1] == ["check"] and len(arguments) in (2, 3):
            if options:
                count(job_metrics.forget_lost, places, options, environment, tell)
            return health_check.check(arguments[1], places, options, tell) if options else 0
        if arguments in (["prolog"], ["epilog"]):
            return (
                {"prolog": prolog, "epilog": epilog}[arguments[0]](places, environment, options, tell) if options else 0
            )
    except Exception as error:  # pylint: disable=broad-except
        tell("failed, which says nothing about the node: %s: %s" % (type(error).__name__, error))
        return 1
    sys.stderr.write(USAGE + "\n")
    return 2


def syslog_as(name):
    syslog.openlog(name, syslog.LOG_PID, syslog.LOG_DAEMON)
    return lambda words: syslog.syslog(syslog.LOG_NOTICE, words)


def read_options(declaration):
    """Return the options of role health; None where the node's health is not watched."""
    try:
        with open(declaration) as stream:
            return program_options.parse(stream.read())
    except EnvironmentError:
        return None


def prolog(places, environment, options, tell):
    """Refuse a job, or note that it has its GPUs from now on."""
    code = refuse(places, environment, options, tell)
    if not code:
        count(job_metrics.begin, places, options, environment, tell)
    return code


def count(change, places, options, environment, tell):
    """Change the metric of jobs; a job does not depend on it."""
    try:
        change(places, options, environment)
    except Exception as error:  # pylint: disable=broad-except
        tell("the metric of jobs stays as it is: %s: %s" % (type(error).__name__, error))


def refuse(places, environment, options, tell):
    """Refuse a job with GPUs on a node that is out of service for its health, by a decision that the breaker has let pass."""
    if not environment.get("SLURM_JOB_GPUS") or options["hook_mode"] != "act":
        return 0
    leftovers.wait(
        lambda: demanded(places) and kept.decided(places.directory)["outcome"] in ("", "in", "draining"), UNDECIDED
    )
    reason = demanded(places)
    if not reason or kept.decided(places.directory)["outcome"] != "out":
        return 0
    kept.refuse(places.directory, {"what": reason, "time": time.time()})
    tell("job %s is refused: %s" % (environment.get("SLURM_JOB_ID"), reason))
    return REFUSED


def demanded(places):
    """Return the reason to take the node out of service that its health gives now; empty without any."""
    document = kept.load(places.directory, kept.DOCUMENT, {})
    return decision.reason_of(document) if document and decision.is_current(document, time.time()) else ""


def epilog(places, environment, options, tell):
    """End what the job left on its GPUs; refuse the node where a process or its memory stays."""
    count(job_metrics.end, places, options, environment, tell)
    job, numbers = environment["SLURM_JOB_ID"], leftovers.minors(environment.get("SLURM_JOB_GPUS"))
    if not numbers:
        return 0
    devices = leftovers.devices(numbers, places.dev)
    found = leftovers.left_by(places.proc, job, int(environment["SLURM_JOB_UID"]), set(devices))
    if found:
        tell("job %s of user %s left processes on its GPUs: %s" % (
            job, environment["SLURM_JOB_UID"], ", ".join(str(pid) for pid, dummy in found)))  # fmt: skip
    if options["hook_mode"] != "act":
        return 0
    processes = leftovers.clear(places.proc, found)
    gpus = leftovers.wait(lambda: leftovers.unaccounted(numbers, places.library, places.opener), leftovers.GRACE // 2)
    if not processes and not gpus:
        return 0
    words = ["processes that cannot be killed: %d" % len(processes)] if processes else []
    words += ["memory in use without a process: %s" % ", ".join("nvidia%d" % one for one in gpus)] if gpus else []
    what = decision.PREFIX + decision.plain("epilog of job %s: %s" % (job, "; ".join(words)))
    note = {"what": what, "time": time.time(), "processes": processes, "gpus": gpus}
    kept.refuse(places.directory, note)
    tell(what)
    return REFUSED
