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
from . import slurm_conf, slurm_probe, tuning_record

RECORD = "slurm"
# What role slurm writes next to slurm.conf, and the file of the cluster's that has to include it.
FILES = {"allreduce_gres.conf": "gres.conf", "allreduce_nodes.conf": "slurm.conf"}
_LINE = re.compile(r"(?im)^[ \t]*NodeName=(\S+)[ \t]+(.*?)[ \t]*$")
_VERSION = re.compile(r"\b(\d{2}\.\d{2}(?:\.\d+)?)")
# What role slurm installed, to be removed with it, and how each file that it writes begins.
INSTALLED = "/var/lib/allreduce/slurm_installed.json"
OURS = "# Written by role allreduce.gpu.slurm"
# The programs that Slurm starts on a node, see module_utils/slurm, and the scripts that start them.
PROGRAMS, SCRIPTS = "/opt/allreduce/lib/slurm", ("check", "prolog", "epilog")
_NAMED = re.compile(r"(\w{1,40})[ \t]*=[ \t]*\"?%s/" % re.escape(PROGRAMS))
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
    start nothing; probe: ask the controller, too; submit: (name, lines of slurm.conf about the node, partition) -> what a job sees.
    """
    name = name or (tree.text("/proc/sys/kernel/hostname") or "").partition(".")[0]
    lines = {file: _lines(tree, directory, file, name) for file in sorted(FILES)}
    job = (lambda partition: submit(name, lines["allreduce_nodes.conf"] or [], partition)) if submit else None
    record = tuning_record.load(tree, tuning_record.path_of(RECORD))
    return {
        "recorded": record is not None,
        "name": name,
        "version": read_version(run) if run else None,
        "places": processors.read(tree),
        "memory_kib": _memory(tree),
        "capabilities": read_capabilities(tree),
        "configured": tree.exists("%s/slurm.conf" % directory),
        "included": read_included(tree, directory, (record or {}).get("files", ())),
        "named": read_named(tree, directory),
        "lines": lines,
        "foreign": is_foreign(tree, directory),
        "installed": read_installed(tree),
        "programs": read_digest(tree, PROGRAMS, SCRIPTS),
        "confines": set((tree.text(CONTROLLERS) or "").split()) >= NEEDED,
        "asked": slurm_probe.ask(tree, name, run, directory, submit=job) if probe and run else None,
    }


def is_foreign(tree, directory):
    """Return True if there is a slurm.conf that the role did not write."""
    path = "%s/slurm.conf" % directory
    return tree.exists(path) and not (slurm_conf.text(tree, path) or "").startswith(OURS)


def read_included(tree, directory, written):
    """Return {our file: places of the lines that include it}, of those next to slurm.conf and those that were written elsewhere before."""
    ours = {"%s/%s" % (directory.rstrip("/"), file) for file in FILES} | set(written)
    found = {}
    for place in sorted({path.rpartition("/")[0] for path in ours}):
        for parent in sorted(set(FILES.values())):
            for line in slurm_conf.lines(tree, "%s/%s" % (place, parent)):
                path = slurm_conf.target(line, place)
                if path in ours:
                    found.setdefault(path, []).append("%s:%d" % (line.file, line.number))
    return found


def read_named(tree, directory):
    """Return {key of slurm.conf that names one of our programs: place of its line}, as slurmd reads it; nothing where slurm.conf is ours."""
    place = slurm_probe.place(tree, directory)
    if not is_foreign(tree, place):
        return {}
    matches = [(_NAMED.match(line.text), line) for line in slurm_conf.lines(tree, "%s/slurm.conf" % place)]
    return {match.group(1): "%s:%d" % (line.file, line.number) for match, line in matches if match}


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


def _lines(tree, directory, file, name):
    """Return the lines of the file about this node, without its name; None where there is no such file for Slurm to read."""
    content = slurm_conf.text(tree, "%s/%s" % (slurm_probe.place(tree, directory), file))
    return None if content is None else [rest for hosts, rest in _LINE.findall(content) if hostlist.has(hosts, name)]
