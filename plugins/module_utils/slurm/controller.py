# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of Slurm that a node asks and tells of itself with; each has a deadline."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import subprocess

from .decision import Seen

SECONDS = 8
# sinfo(1): one line for each node and partition; the reason is the last, since it may have any sign.
SINFO = ("sinfo", "--all", "--Node", "--noheader", "--format=%N|%T|%H|%E")
# sinfo(1), ENVIRONMENT VARIABLES: any other value than its words goes to strftime(3); %s are seconds since 1970.
ENVIRONMENT = {"SLURM_TIME_FORMAT": "%s"}
NO_REASON = "none"


class RefusedError(Exception):
    """A command that did not do what it was told, or not in time."""


def run(command):
    """Return the output of a command."""
    try:
        done = subprocess.run(
            list(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SECONDS,
            env=dict(os.environ, **ENVIRONMENT), check=False,
        )  # fmt: skip
    except (EnvironmentError, subprocess.TimeoutExpired) as error:
        raise RefusedError("%s: %s" % (command[0], error))
    if done.returncode:
        raise RefusedError("%s: %s" % (command[0], done.stderr.decode("utf-8", "replace").strip()[:200]))
    return done.stdout.decode("utf-8", "replace")


def nodes():
    """Return {name: Seen} of all nodes."""
    return parse(run(SINFO))


def parse(text):
    """Return the nodes that sinfo printed; a line that is none of a node is left out."""
    found = {}
    for line in text.splitlines():
        parts = line.split("|", 3)
        if len(parts) == 4:
            name, state, since, reason = (part.strip() for part in parts)
            found[name] = Seen(state, "" if reason == NO_REASON else reason, int(since) if since.isdigit() else None)
    return found


def drain(name, reason):
    run(("scontrol", "update", "NodeName=%s" % name, "State=DRAIN", "Reason=%s" % reason))


def rename(name, reason):
    run(("scontrol", "update", "NodeName=%s" % name, "Reason=%s" % reason))


def resume(name):
    run(("scontrol", "update", "NodeName=%s" % name, "State=RESUME"))
