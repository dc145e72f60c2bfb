# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask the controller of a Slurm cluster about this node, in seconds, whatever state it is in.

Slurm's programs wait for a controller that does not answer; so its port is tried first. An answer that is refused although the port
answers is one of a host that munge does not trust.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re
import socket

# Drop-ins that role slurm writes; that of slurmd names the controller.
DROP_IN = "/etc/systemd/system/%s.service.d/allreduce.conf"
UNIT = DROP_IN % "slurmd"
_CONTROLLER = re.compile(r"--conf-server=(?:\[([^\]\s]+)\]|([^\s:]+)):(\d{1,5})\b")
# Of slurmdbd, which runs next to slurmctld (slurmdbd.conf(5)).
ACCOUNTING_PORT = 6819
SECONDS = 3
# A reason is what an administrator typed.
LONGEST_REASON = 200
# Seconds that a job waits for a node that is idle, and minutes that it may take.
WAITS, MINUTES = 30, 2
# CUDA counts only what this variable has; Slurm sets it by the GPUs that the job was given.
_SEEN = "echo seen=$CUDA_VISIBLE_DEVICES"
_GRES = re.compile(r"\bgpu:(?:[^:,\s]+:)?(\d+)")


def ask(tree, name, run, reaches=None, submit=None):
    """Return the controller's answer about the node; its address is empty where the role has set up no slurmd.

    reaches: (address, port) -> bool; submit: () -> what run_job returns, called where the node is idle, so that no job of others waits
    """
    found = _CONTROLLER.search(tree.text(UNIT) or "")
    reaches, address = reaches or is_reachable, (found.group(1) or found.group(2)) if found else ""
    reachable = bool(found) and reaches(address, int(found.group(3)))
    said = run(["timeout", "20", "sinfo", "--noheader", "--nodes=%s" % name, "--format=%T|%E"]) if reachable else None
    state, reason = parse_node(said or "")
    return {
        "controller": address,
        "reachable": reachable,
        "accounting": bool(found) and reaches(address, ACCOUNTING_PORT),
        "answers": said is not None,
        "state": state,
        "reason": reason,
        "job": submit() if submit and state == "idle" else None,
    }


def run_job(name, user, lines, execute):
    """Run one job of the user's on the node with all GPUs that Slurm has there; return how many it sees, and else why it did not run.

    lines: of slurm.conf about the node; execute: returns (exit code, output)
    """
    asked = sum(int(count) for line in lines for count in _GRES.findall(line))
    gpus = ["--gres=gpu:%d" % asked] if asked else []
    srun = [
        "srun",
        "--nodes=1",
        "--ntasks=1",
        "--nodelist=%s" % name,
        "--immediate=%d" % WAITS,
        "--time=%d" % MINUTES,
        "--chdir=/",
    ]
    command = ["timeout", str(60 * MINUTES + WAITS), *srun, "--job-name=allreduce-verify", *gpus, "sh", "-c", _SEEN]
    code, said = execute(["runuser", "--user", user, "--", *command])
    found = re.search(r"(?m)^seen=(.*)$", said)
    if code or not found:
        words = "".join(sign if sign.isprintable() else " " for sign in said.strip()[-LONGEST_REASON:])
        return {"seen": None, "reason": words or "it ended with %d" % code}
    return {"seen": len([one for one in found.group(1).split(",") if one.strip()]), "reason": ""}


def is_reachable(address, port):
    """Return True if something answers there."""
    try:
        socket.create_connection((address, port), timeout=SECONDS).close()
    except (EnvironmentError, ValueError):
        return False
    return True


def parse_node(text):
    """Return (state, reason) of sinfo's first line; empty where it does not name the node.

    Signs after a state say how a node is powered or reached (sinfo(1), NODE STATE CODES): only that it does not respond is kept.
    """
    lines = [line for line in text.splitlines() if "|" in line]
    if not lines:
        return "", ""
    state, dummy, reason = lines[0].partition("|")
    printable = "".join(sign if sign.isprintable() else " " for sign in reason)
    return state.strip().rstrip("~#!%$@^-+"), printable.strip()[:LONGEST_REASON]
