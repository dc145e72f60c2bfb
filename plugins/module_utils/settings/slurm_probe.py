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

from . import slurm_conf

# Drop-ins that role slurm writes; that of slurmd names the controller.
DROP_IN = "/etc/systemd/system/%s.service.d/allreduce.conf"
UNIT = DROP_IN % "slurmd"
# Where slurmd keeps what a controller sends it (doc/html/configless_slurm.shtml); 22.05 and newer send included files, too.
SENT = "/run/slurm/conf"
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


def place(tree, directory):
    """Return where slurmd reads its configuration. directory: of slurm.conf, where no controller sends it."""
    return SENT if tree.is_directory(SENT) else directory


def find(tree, run, directory):
    """Return (address, port) of the cluster's controllers, whoever runs them: of our drop-in, else as slurmd finds them."""
    return (
        slurm_conf.servers(tree.text(UNIT) or "")
        or slurm_conf.controllers(slurm_conf.lines(tree, SENT + "/slurm.conf"))
        or slurm_conf.servers(slurm_conf.options(tree, run))
        or slurm_conf.controllers(slurm_conf.lines(tree, directory + "/slurm.conf"))
    )


def ask(tree, name, run, directory="/etc/slurm", reaches=None, submit=None):
    """Return the controller's answer about the node; its address is empty where none is named anywhere.

    reaches: (address, port) -> bool; submit: (partition) -> what run_job returns, called where the node is idle, so that no job of others
    waits
    """
    reaches, found = reaches or is_reachable, find(tree, run, directory)
    answering = [one for one in found if reaches(*one)][:1]
    address = (answering or found or [("", 0)])[0][0]
    # Without a configuration, sinfo would fetch one, and wait a minute for files that it includes (seen with 22.05).
    configured = tree.exists("%s/slurm.conf" % place(tree, directory))
    asked = ["timeout", "20", "sinfo", "--all", "--noheader", "--nodes=%s" % name, "--format=%T|%P|%E"]
    said = run(asked) if answering and configured else None
    state, partition, reason = parse_node(said or "")
    able = said is not None or not answering or (configured and run(["sh", "-c", "command -v sinfo"]) is not None)
    return {
        "controller": address,
        "reachable": bool(answering),
        # That of a cluster of others may be anywhere.
        "accounting": tree.exists(UNIT) and bool(found) and reaches(address, ACCOUNTING_PORT),
        "answers": said is not None if able else None,
        "state": state,
        "reason": reason,
        "job": submit(partition) if submit and state == "idle" else None,
    }


def run_job(name, user, lines, execute, partition=""):
    """Run one job of the user's on the node with all GPUs that Slurm has there; return how many it sees, and else why it did not run.

    lines: of slurm.conf about the node; execute: returns (exit code, output); partition: empty for the one that jobs get by default
    """
    asked = sum(int(count) for line in lines for count in _GRES.findall(line))
    more = ["--gres=gpu:%d" % asked] if asked else []
    more += ["--partition=%s" % partition] if partition else []
    srun = [
        "srun",
        "--nodes=1",
        "--ntasks=1",
        "--nodelist=%s" % name,
        "--immediate=%d" % WAITS,
        "--time=%d" % MINUTES,
        "--chdir=/",
    ]
    command = ["timeout", str(60 * MINUTES + WAITS), *srun, "--job-name=allreduce-verify", *more, "sh", "-c", _SEEN]
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
    """Return (state, partition, reason) of sinfo's lines, one for each partition of the node; empty where they do not name the node.

    Signs after a state say how a node is powered or reached (sinfo(1), NODE STATE CODES): only that it does not respond is kept. The
    partition is empty where the node is in the default one, which has a sign, too.
    """
    lines = [line.split("|", 2) for line in text.splitlines() if line.count("|") > 1]
    # Partitions without nodes are listed, too.
    lines = [line for line in lines if line[0].strip() != "n/a"]
    if not lines:
        return "", "", ""
    state, partition, reason = lines[0]
    printable = "".join(sign if sign.isprintable() else " " for sign in reason)
    is_default = any(line[1].strip().endswith("*") for line in lines)
    return (
        state.strip().rstrip("~#!%$@^-+"),
        "" if is_default else partition.strip(),
        printable.strip()[:LONGEST_REASON],
    )
