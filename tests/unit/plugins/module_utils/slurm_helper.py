# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A directory with programs sinfo and scontrol that answer from one file, in which several processes may change nodes at the same time."""

import json
import sys
import time
from pathlib import Path

COMMAND = """\
#!{python}
import fcntl, json, os, sys, time
place, name = {place!r}, os.path.basename(sys.argv[0])
with open(place + ".lock", "w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    with open(place) as stream:
        nodes = json.load(stream)
    if os.path.exists(place + ".broken"):
        sys.exit("slurm_load_node error: Unable to contact slurm controller")
    if name == "sinfo":
        assert os.environ["SLURM_TIME_FORMAT"] == "%s"
        for node, (state, reason, since) in nodes.items():
            print("%s|%s|%s|%s" % (node, state, since or "Unknown", reason or "none"))
    else:
        with open(place + ".log", "a") as log:
            log.write(json.dumps(sys.argv[1:]) + "\\n")
        words = dict(word.split("=", 1) for word in sys.argv[2:])
        one = nodes[words["NodeName"]]
        if words.get("State") == "RESUME":
            one[:] = ["idle", "", None]
        elif words.get("State") == "DRAIN":
            one[:] = ["drained", words["Reason"], int(time.time())]
        else:
            one[1:] = [words["Reason"], int(time.time())]
        with open(place, "w") as stream:
            json.dump(nodes, stream)
"""


class SlurmCommands:
    """nodes: {name: (state, reason, since)}."""

    def __init__(self, place: Path, *names):
        self.file, self.directory = place / "nodes.json", place / "bin"
        self.directory.mkdir()
        self.nodes = dict.fromkeys(names, ("idle", "", None))
        for name in ("sinfo", "scontrol"):
            (self.directory / name).write_text(COMMAND.format(python=sys.executable, place=str(self.file)), "utf-8")
            (self.directory / name).chmod(0o755)

    @property
    def nodes(self):
        return {name: tuple(one) for name, one in json.loads(self.file.read_text("utf-8")).items()}

    @nodes.setter
    def nodes(self, nodes):
        self.file.write_text(json.dumps(nodes), "utf-8")

    def set(self, name, state, reason, since=None):
        self.nodes = {**self.nodes, name: (state, reason, int(time.time()) if since is None else since)}

    @property
    def told(self):
        """What scontrol was told, one list of arguments for each time."""
        log = Path(f"{self.file}.log")
        return [json.loads(line) for line in log.read_text("utf-8").splitlines()] if log.exists() else []

    def stop(self):
        """Let no command answer."""
        Path(f"{self.file}.broken").touch()
