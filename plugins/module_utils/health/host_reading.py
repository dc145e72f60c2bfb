# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what tells of the health of the machine around the GPUs; starts no program."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import re

from ..host.interrupts import members
from ..machine.files import FileTree
from ..machine.procfs import has_network_mounts
from ..settings.nccl import read_nccl
from .clock import read_clock
from .disks import read_disks
from .processes import FIRST_NAMESPACE

TOTAL = re.compile(r"^MemTotal:\s+(\d+) kB", re.M)
# Documentation/ABI/testing/sysfs-bus-pci-devices-aer of the kernel.
AER = re.compile(r"^TOTAL_ERR_(?:NON)?FATAL (\d+)", re.M)
# Drivers of the kernel for NVIDIA's GPUs, and where modprobe.d(5) says what is not to be loaded.
RIVALS = ("nouveau", "nova_core")
MODPROBE = ("/etc/modprobe.d", "/run/modprobe.d", "/usr/local/lib/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d")
BLACKLIST = r"^\s*(?:blacklist\s+%s\s*$|install\s+%s\s+(?:/usr)?/bin/(?:true|false)\b)"
# Counters of memory controllers: Documentation/admin-guide/RAS of the kernel.
CONTROLLERS = "/devices/system/edac/mc"
# Of a recorded machine, below procfs: what read_network_mounts gave, which is not a file on the node.
RECORDED_MOUNTS = "/network_mounts.json"


def read_host(sys_tree, proc_tree, tree, addresses=()):
    """Return the values of each reader, and ``crashed``: {key: what}, of those that crashed, whose value is None.

    ``addresses``: of the GPUs, whose links are looked at.
    """
    found, crashed = {}, {}
    for key, read, trees in (
        ("uptime_seconds", read_uptime, (proc_tree,)),
        ("memory_mib", read_memory, (proc_tree,)),
        ("cpus", read_cpus, (sys_tree,)),
        ("memory_errors", read_memory_errors, (sys_tree,)),
        ("nccl", read_nccl, (tree,)),
        ("aer", read_aer, (sys_tree, addresses)),
        ("clock", read_clock, (proc_tree,)),
        ("disks", read_disks, (sys_tree,)),
        ("nvme", read_nvme, (sys_tree, proc_tree)),
        ("network_mounts", read_mounts, (proc_tree,)),
        ("uvm", read_uvm, (sys_tree,)),
        ("rivals", read_rivals, (sys_tree, tree)),
    ):
        try:
            found[key] = read(*trees)
        except Exception as error:  # pylint: disable=broad-except
            found[key], crashed[key] = None, type(error).__name__
    return dict(found, crashed=crashed)


def read_nvme(sys_tree, proc_tree):
    """Return the logs of NVMe drives, see nvme_log; imported here, since a node without one need not compile it.

    What a container sees are the drives of its host.
    """
    if not sys_tree.names("/class/nvme") or proc_tree.link("/self/ns/pid") != FIRST_NAMESPACE:
        return []
    from .nvme_log import read_nvme as read_logs

    return read_logs(sys_tree)


def read_mounts(proc_tree):
    """Return the network file systems, see network_mounts, with ``words``; those of a recorded machine are in a file of their own."""
    if proc_tree.root != "/proc":
        return json.loads(proc_tree.text(RECORDED_MOUNTS) or "[]")
    tree = FileTree(proc_tree.root)  # of its own: in a recording, the table of all mounts stays on the node
    if not has_network_mounts(tree):
        return []
    from ..storage.network_mounts import in_words, read_network_mounts

    return [dict(one, words=in_words(one)) for one in read_network_mounts(tree)]


def read_aer(tree, addresses):
    """Return {address: {fatal, nonfatal}}, errors that either end of a GPU's link has reported since boot.

    A kernel or a machine that counts none has no entry.
    """
    found = {}
    for address in addresses:
        place = tree.resolve("/bus/pci/devices/" + address)
        for kind in ("fatal", "nonfatal"):
            texts = [tree.text("%s/aer_dev_%s" % (end, kind)) for end in (place, place.rpartition("/")[0])]
            totals = [AER.search(one) for one in texts if one]
            if any(totals):
                found.setdefault(address, {})[kind] = sum(int(total.group(1)) for total in totals if total)
    return found


def read_uvm(tree):
    """Return True if the driver's module for unified memory is loaded; None where the kernel does not tell of modules."""
    return tree.exists("/module/nvidia_uvm") if tree.is_directory("/module") else None


def read_rivals(sys_tree, tree):
    """Return {driver: {``blacklisted``: file}} of the kernel's own drivers that are loaded while NVIDIA's is not."""
    if sys_tree.exists("/module/nvidia"):
        return {}
    names = [name for name in RIVALS if sys_tree.exists("/module/" + name)]
    return {name: {"blacklisted": find_blacklist(tree, name)} for name in names}


def find_blacklist(tree, name):
    """Return the file that keeps a module from being loaded by itself; None without one. To kmod, - and _ are one in its name."""
    either = name.replace("_", "[-_]")
    for directory in MODPROBE:
        for file in tree.names(directory):
            place = "%s/%s" % (directory, file)
            if file.endswith(".conf") and re.search(BLACKLIST % (either, either), tree.text(place) or "", re.M):
                return place
    return None


def read_uptime(tree):
    """Return the seconds since boot, as the first number of /proc/uptime has them."""
    try:
        return float((tree.text("/uptime") or "").split()[0])
    except (ValueError, IndexError):
        return None


def read_memory(tree):
    """Return the memory that the kernel has to give, in MiB."""
    total = TOTAL.search(tree.text("/meminfo") or "")
    return int(total.group(1)) // 1024 if total else None


def read_cpus(tree):
    """Return the number of logical processors that are online."""
    return len(members(tree.text("/devices/system/cpu/online"))) or None


def read_memory_errors(tree):
    """Return [{``name``: mc0, ``uncorrected``, ``corrected``, ``dimms``}], the last: labels of those with uncorrected errors."""
    found = []
    for name in tree.names(CONTROLLERS):
        if re.match(r"mc\d+$", name):
            place = "%s/%s" % (CONTROLLERS, name)
            found.append(
                {
                    "name": name,
                    "uncorrected": tree.number(place + "/ue_count"),
                    "corrected": tree.number(place + "/ce_count"),
                    "dimms": read_dimms(tree, place),
                }
            )
    return found


def read_dimms(tree, controller):
    places = ["%s/%s" % (controller, name) for name in tree.names(controller) if re.match(r"(dimm|rank)\d+$", name)]
    bad = [place for place in places if tree.number(place + "/dimm_ue_count")]
    return [tree.text(place + "/dimm_label") or place.rpartition("/")[2] for place in bad]
