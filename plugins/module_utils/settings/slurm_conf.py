# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the configuration of a Slurm cluster, whoever wrote it: slurm.conf or gres.conf with all files that they include (slurm.conf(5))."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re
from collections import namedtuple

from ..machine.regular import IrregularError, read_regular

# A line without its comment. file, number: where it is.
Line = namedtuple("Line", "file number text")
# It is nobody's of ours; a longer file is none, and more of them are a circle.
LONGEST, MOST = 4 * 1024 * 1024, 100
_INCLUDE = re.compile(r"(?i)include[ \t]+([^\s\x00-\x1f\x7f]+)")
_HOST = re.compile(r"(?i)SlurmctldHost[ \t]*=[ \t]*\"?([^\s()\"]+)(?:\(([^\s()]+)\))?")
_PORT = re.compile(r"(?i)SlurmctldPort[ \t]*=[ \t]*(\d{1,5})")
# slurmd(8), --conf-server: hosts with or without a port, as they are in a unit, in its environment, or in a file of options.
_SERVERS = re.compile(r"--conf-server[= ]+\"?([^\s\"';]+)")
_SERVER = re.compile(r"(?:\[([^\]]+)\]|([^:\[\]]+))(?::(\d{1,5}))?\Z")
_OPTIONS = re.compile(r"(?m)^EnvironmentFiles=(/\S+)")
# slurm.conf(5), SlurmctldPort.
PORT = 6817


def text(tree, path):
    """Return the text of a regular file; None of anything else."""
    try:
        content = read_regular(tree.path(tree.resolve(path)), LONGEST, follow=True)
    except (EnvironmentError, IrregularError):
        return None
    return content.decode("utf-8", "replace")


def lines(tree, path):
    """Return the lines of a file and of those that it includes, in the order in which they are read; none where it is not there."""
    return list(_lines(tree, path, path.rpartition("/")[0], set()))


def _lines(tree, path, directory, seen):
    if path in seen or len(seen) >= MOST:
        return
    seen.add(path)
    for number, line in enumerate((text(tree, path) or "").splitlines(), 1):
        found = Line(path, number, line.partition("#")[0].strip())
        yield found
        if target(found, directory):
            yield from _lines(tree, target(found, directory), directory, seen)


def target(line, directory):
    """Return the path of the file that a line includes, None for any other line. directory: of slurm.conf, where bare names are."""
    found = _INCLUDE.match(line.text)
    return None if not found else found.group(1) if found.group(1).startswith("/") else directory + "/" + found.group(1)


def controllers(found):
    """Return (address, port) of each host of slurmctld that the lines of slurm.conf name, the first one first."""
    ports = [match.group(1) for match in (_PORT.match(line.text) for line in found) if match]
    hosts = [match for match in (_HOST.match(line.text) for line in found) if match]
    return [(match.group(2) or match.group(1), int(ports[-1]) if ports else PORT) for match in hosts]


def servers(words):
    """Return (address, port) of each host that options of slurmd name as the source of its configuration; none where there are no such."""
    named = _SERVERS.findall(words)
    matches = [_SERVER.match(one) for one in named[-1].split(",")] if named else []
    return [(match.group(1) or match.group(2), int(match.group(3) or PORT)) for match in matches if match]


def options(tree, run):
    """Return the command line of slurmd with its environment, as systemd has them, and the files that this comes from. run: see read_slurm"""
    shown = run(["systemctl", "show", "slurmd", "--property=ExecStart,Environment,EnvironmentFiles"]) or ""
    return "\n".join([text(tree, path) or "" for path in _OPTIONS.findall(shown)] + [shown])
