# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that a timer of systemd runs: judge the node, compare with earlier runs, and tell it.

What asks the driver does so in a child with a deadline: a driver that hangs in the kernel is unknown, and no run waits for it.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import fcntl
import os
import socket
import sys
import time

from ..machine.child import bounded
from ..machine.files import FileTree, replace
from ..machine.nvml import DEFAULT_LIBRARY
from . import ata_log, examination, hook, metrics, nic_history, program_options, state
from .document import describe_gpus, describe_run, finding_key
from .findings import fault, judged, without_findings
from .kernel_log import RING
from .over_time import follow, is_left_out
from .processes import FIRST_NAMESPACE
from .verdict import judge

USAGE = "usage: health [--clear PORT]"
TEXTFILE = "allreduce_health.prom"


def main(arguments, places=None, declaration=program_options.DECLARATION, directory=program_options.DIRECTORY):
    """Run once, or clear what is held against a port; 0, or the words of a failure."""
    places = places or examination.Places(FileTree("/sys"), FileTree("/proc"), FileTree("/"), DEFAULT_LIBRARY, RING)
    try:
        with open(declaration) as stream:
            options = program_options.parse(stream.read())
        if not os.path.isdir(directory):
            os.makedirs(directory)
        with open(os.path.join(directory, "lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if arguments:
                return clear(arguments, directory)
            return run(places, options, directory)
    except (EnvironmentError, ValueError) as error:
        return "%s: %s" % (declaration, error)


def clear(arguments, directory):
    """Forget what is held against a port."""
    path = os.path.join(directory, "state.json")
    known = state.load(path)
    if len(arguments) != 2 or arguments[0] != "--clear":
        return USAGE
    if arguments[1] not in known["ports"]:
        return "%s is not one of the ports that are followed: %s" % (
            arguments[1],
            ", ".join(sorted(known["ports"])) or "none",
        )
    state.keep(path, dict(known, ports=nic_history.cleared(known["ports"], arguments[1])))
    return 0


def run(places, options, directory):
    """Judge once and tell it: the document, the metrics, the program that is to be told, the state of the next run."""
    path, began = os.path.join(directory, "state.json"), time.time()
    known = state.after_boot(state.load(path), places.proc.text("/sys/kernel/random/boot_id"))
    known = hook.known_to(known, options)
    found, stuck = look(places, options, known)
    ask_drives(found["history"], places, options, known, began)
    over, after = follow(known, found, began, options)
    entries = found["judged"] + [entry for entry in over if not is_left_out(entry, options)]
    skipped = found["skipped_checks"] + [one["check"] for one in over if is_left_out(one, options)]
    findings = found["findings"] + [one for entry in over for one in entry["findings"] if entry in entries]
    now = time.time()
    document = describe_run(
        socket.gethostname(), now, now - began,
        {"findings": findings, "notes": found["notes"], "judged": [without_findings(entry) for entry in entries], "skipped_checks": skipped},
        known["findings"],
    )  # fmt: skip
    document.update(found["told"])
    after.update(stuck=stuck, findings={finding_key(one): one["since"] for one in document["findings"]})
    return tell(document, after, options, directory, now)


def look(places, options, known):
    """Return (what a child found, None), or that the driver does not answer, and {``pid``, ``start``} of a child that hangs.

    A child that hangs is not joined by another in every run.
    """
    if known["stuck"] and start_of(places.proc, known["stuck"]["pid"]) == known["stuck"]["start"]:
        return unanswered("hangs", "process %d still waits" % known["stuck"]["pid"]), known["stuck"]
    said, ending = bounded(lambda say: examine(say, places, options), options["seconds"])
    if ending == "done" and len(said) == 2:
        return said[1], None
    if ending != "timeout":
        return unanswered("crashed", said[1]["error"] if len(said) == 2 else ending), None
    pid = said[0] if said else None
    start = start_of(places.proc, pid)
    return unanswered("hangs", "no answer in %d seconds" % options["seconds"]), {
        "pid": pid,
        "start": start,
    } if start else None


def ask_drives(history, places, options, known, now):
    """Add to what a run found what ATA drives say, once in a while; what a container sees are the drives of its host."""
    if history is None or "ata_health" in options["skip_checks"] or places.proc.link("/self/ns/pid") != FIRST_NAMESPACE:
        return
    if ata_log.is_due(known["drives"], history["uptime_seconds"] or now):
        history["drives"] = ata_log.read_ata(places.sys, places.root)


def start_of(tree, pid):
    """Return when a process started, in ticks since boot; None where it is gone (proc_pid_stat(5))."""
    fields = (tree.text("/%s/stat" % pid) or "").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] not in ("Z", "X") else None


def examine(say, places, options):
    """Say the own number, then everything that was found, or why nothing was."""
    say(os.getpid())
    try:
        node, readings = examination.read(places, sampled=True)
        found = judge(node, readings, options)
        say(
            {
                "findings": found["findings"],
                "notes": found["notes"],
                "judged": found["judged"],
                "skipped_checks": found["skipped_checks"],
                "told": describe_gpus(node, readings, options["gpu_count"]),
                "history": examination.history(places, node, readings),
            }
        )
    except Exception as error:
        say({"error": "%s: %s" % (type(error).__name__, error)})
        raise


def unanswered(code, measured):
    """Return the answer for a node that could not be asked."""
    finding = fault("nvml", code, "an answer", measured)
    entry = judged("nvml", "an answer", measured)
    return {
        "findings": [finding],
        "notes": [],
        "judged": [without_findings(entry)],
        "skipped_checks": [],
        "told": {},
        "history": None,
    }


def tell(document, after, options, directory, now):
    """Write what a run found; a program that is told sees the whole document, and what becomes of it stands in the next state."""
    path = os.path.join(directory, "health.json")
    decided = hook.decide(after, document, options, now)
    told = {key: value for key, value in decided.items() if key != "acts"} if decided else None
    state.keep(path, dict(document, hook=told))
    refused = write_metrics(document, options["textfile_directory"])
    ending = "done"
    if decided:
        sys.stdout.write(hook.sentence(decided) + "\n")
        sys.stdout.flush()
        if decided["outcome"] == "call":
            ending = hook.call(options["hook"], path, options["hook_seconds"])
    # A program that failed is told again in the next run.
    if ending == "done":
        after.update(
            verdict=document["verdict"], action=document["action"], acts=decided["acts"] if decided else after["acts"]
        )
    state.keep(os.path.join(directory, "state.json"), after)
    return (refused or 0) if ending == "done" else "%s: %s" % (options["hook"], ending)


def write_metrics(document, directory):
    """Write the metrics where node exporter looks for them; a directory that is not there has no reader.

    Return the words of a failure: whoever waits for the verdict is told it all the same.
    """
    if not directory or not os.path.isdir(directory):
        return None
    path = os.path.join(directory, TEXTFILE)
    try:
        replace(path, metrics.render(document))
    except EnvironmentError as error:
        return "%s: %s" % (path, error.strerror)
    return None
