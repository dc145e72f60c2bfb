# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gather what Slurm's configuration of a node follows from, and what Slurm is told there, as ``ansible_facts.gpu_slurm``."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import re

from ..host import hostlist, processors
from ..machine.program_digest import read_digest
from ..machine.regular import IrregularError, read_regular
from . import slurm_probe, tuning_record

RECORD = "slurm"
# What role slurm writes next to slurm.conf, and the file of the cluster's that has to include it.
FILES = {"allreduce_gres.conf": "gres.conf", "allreduce_nodes.conf": "slurm.conf"}
# Where slurmd keeps what a controller sends it (doc/html/configless_slurm.shtml); 22.05 and newer send included files, too.
SENT = "/run/slurm/conf"
# The cluster's configuration is nobody's of ours; a longer file is none.
LONGEST = 4 * 1024 * 1024
_LINE = re.compile(r"(?im)^[ \t]*NodeName=(\S+)[ \t]+(.*?)[ \t]*$")
_INCLUDE = re.compile(r"(?im)^[ \t]*include[ \t]+(\S+)")
_VERSION = re.compile(r"\b(\d{2}\.\d{2}(?:\.\d+)?)")
# What role slurm installed, to be removed with it, and how each file that it writes begins.
INSTALLED = "/var/lib/allreduce/slurm_installed.json"
OURS = "# Written by role allreduce.gpu.slurm"
# The programs that Slurm starts on a node, see module_utils/slurm, and the scripts that start them.
PROGRAMS, SCRIPTS = "/opt/allreduce/lib/slurm", ("check", "prolog", "epilog")
# Controllers of cgroup v2 that Slurm's plugin needs (doc/html/cgroup_v2.shtml, Requirements).
CONTROLLERS = "/sys/fs/cgroup/cgroup.controllers"
NEEDED = {"cpu", "cpuset", "memory"}
CAPABILITIES = "/proc/driver/nvidia-caps/mig-minors"
# The instances that there are; the other file has numbers for all that there could be (NVIDIA MIG User Guide, Device Nodes).
INSTANCES = "/proc/driver/nvidia/capabilities"
_CAPABILITY = re.compile(r"(?m)^(gpu(\d+)/(gi\d+(?:/ci\d+)?)/access) (\d+)$")


def read_slurm(tree, directory, name="", run=None, probe=False, submit=None):
    """Return the whole fact.

    directory: of slurm.conf; name: the node's in Slurm, else what its host name begins with; run: returns a program's output, None to
    start nothing; probe: ask the controller, too; submit: (name, lines of slurm.conf about the node) -> what a job sees.
    """
    name = name or (tree.text("/proc/sys/kernel/hostname") or "").partition(".")[0]
    lines = {file: _lines(tree, directory, file, name) for file in sorted(FILES)}
    job = (lambda: submit(name, lines["allreduce_nodes.conf"] or [])) if submit else None
    return {
        "recorded": tuning_record.load(tree, tuning_record.path_of(RECORD)) is not None,
        "name": name,
        "version": read_version(run) if run else None,
        "places": processors.read(tree),
        "memory_kib": _memory(tree),
        "capabilities": read_capabilities(tree),
        "configured": tree.exists("%s/slurm.conf" % directory),
        "included": {file: _includes(tree, directory, file) for file in sorted(FILES)},
        "lines": lines,
        "foreign": is_foreign(tree, directory),
        "installed": read_installed(tree),
        "programs": read_digest(tree, PROGRAMS, SCRIPTS),
        "confines": set((tree.text(CONTROLLERS) or "").split()) >= NEEDED,
        "asked": slurm_probe.ask(tree, name, run, submit=job) if probe and run else None,
    }


def is_foreign(tree, directory):
    """Return True if there is a slurm.conf that the role did not write."""
    path = "%s/slurm.conf" % directory
    return tree.exists(path) and not (_content(tree, path) or "").startswith(OURS)


def read_installed(tree):
    """Return the packages that the role installed; none where it has installed nothing. ValueError for a record that is not ours."""
    text = tree.text(INSTALLED)
    found = json.loads(text) if text is not None else {"format": 1, "packages": []}
    if not isinstance(found, dict) or found.get("format") != 1:
        raise ValueError("%s is not of this version of the role" % INSTALLED)
    return [str(one) for one in found["packages"]]


def read_version(run):
    """Return 24.11.5 of a program of Slurm's; None where there is none. Distributions write "slurm-wlm 24.11.5"."""
    for command in (["scontrol", "--version"], ["slurmd", "-V"]):
        found = _VERSION.search(run(command) or "")
        if found:
            return found.group(1)
    return None


def read_capabilities(tree):
    """Return {gpu0/gi1/access: number of its device file} of the MIG instances that there are."""
    found = {}
    for path, gpu, instance, number in _CAPABILITY.findall(tree.text(CAPABILITIES) or ""):
        if not tree.exists(INSTANCES) or tree.exists("%s/gpu%s/mig/%s/access" % (INSTANCES, gpu, instance)):
            found[path] = int(number)
    return found


def _memory(tree):
    found = re.search(r"(?m)^MemTotal:\s+(\d+) kB", tree.text("/proc/meminfo") or "")
    return int(found.group(1)) if found else None


def _includes(tree, directory, file):
    """Return True if the cluster's file includes ours; a name without a directory is one next to slurm.conf."""
    named = _INCLUDE.findall(_content(tree, "%s/%s" % (directory, FILES[file])) or "")
    return any(one in (file, "%s/%s" % (directory.rstrip("/"), file)) for one in named)


def _lines(tree, directory, file, name):
    """Return the lines of the file about this node, without its name; None where there is no such file for Slurm to read."""
    place = SENT if tree.is_directory(SENT) else directory
    content = _content(tree, "%s/%s" % (place, file))
    return None if content is None else [rest for hosts, rest in _LINE.findall(content) if hostlist.has(hosts, name)]


def _content(tree, path):
    """Return the text of a regular file; None of anything else."""
    try:
        content = read_regular(tree.path(tree.resolve(path)), LONGEST, follow=True)
    except (EnvironmentError, IrregularError):
        return None
    return content.decode("utf-8", "replace")
