# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which kernels a node runs and has, whose headers are there, and what DKMS has built for them."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import fnmatch
import lzma
import os
import re


def version_key(version):
    """Sort key of kernel versions: numbers compare as numbers (6.1.0-9 < 6.1.0-40), and words come before them."""
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in re.findall(r"\d+|[a-zA-Z]+", version)]


def read_kernels(tree, running=None):
    """The contract's ``kernel`` mapping; ``installed`` are kernels that can be booted, not directories of leftovers."""
    installed = {name[len("vmlinuz-") :] for name in tree.names("/boot") if name.startswith("vmlinuz-")}
    installed = {name for name in installed if "rescue" not in name}
    headers = set()
    for name in tree.names("/lib/modules"):
        if tree.exists("/lib/modules/%s/modules.builtin" % name):
            installed.add(name)
        if tree.is_directory("/lib/modules/%s/build" % name):
            headers.add(name)
    headers.update(
        name for name in tree.names("/usr/src/kernels") if tree.exists("/usr/src/kernels/%s/Makefile" % name)
    )
    for name in tree.names("/usr/src"):
        if name.startswith("linux-headers-") and tree.exists("/usr/src/%s/.config" % name):
            headers.add(name[len("linux-headers-") :])
    ordered = sorted(installed, key=version_key)
    return {
        "running": running or tree.text("/proc/sys/kernel/osrelease"),
        "installed": ordered,
        "headers": sorted(headers, key=version_key),
        "newest": ordered[-1] if ordered else None,
        "driver_modules": {name: has_driver_module(tree, name) for name in ordered},
    }


def has_driver_module(tree, kernel):
    """Whether modprobe finds the NVIDIA modules under this kernel; None where its list of modules is not there.

    depmod lists what DKMS built and what packages brought alike, compressed or not. nvidia-uvm is asked for: CUDA needs
    it, and nothing else has such a name (Debian says nvidia-current-uvm).
    """
    modules = tree.text("/lib/modules/%s/modules.dep" % kernel)
    return None if modules is None else re.search(r"(?m)^[^:]*\bnvidia(-[\w-]+)?-uvm\.ko(\.\w+)?:", modules) is not None


def read_dkms(tree):
    """What ``dkms status`` would print, read from its tree.

    A module is ``installed`` when DKMS has linked it for the kernel, ``built`` when it only compiled, ``added`` when
    nothing was built (then ``kernel`` and ``arch`` are None).
    """
    entries = []
    for module in tree.names("/var/lib/dkms"):
        for version in tree.names("/var/lib/dkms/" + module):
            base = "/var/lib/dkms/%s/%s" % (module, version)
            if tree.exists(base + "/source") and tree.link("/var/lib/dkms/%s/%s" % (module, version)) is None:
                entries += _builds(tree, module, version) or [_entry(module, version, None, None, "added")]
    return entries


def _builds(tree, module, version):
    builds = []
    for kernel in tree.names("/var/lib/dkms/%s/%s" % (module, version)):
        for arch in tree.names("/var/lib/dkms/%s/%s/%s" % (module, version, kernel)):
            built = "%s/%s/%s" % (version, kernel, arch)
            if tree.names("/var/lib/dkms/%s/%s/module" % (module, built)):
                linked = tree.link("/var/lib/dkms/%s/kernel-%s-%s" % (module, kernel, arch)) == built
                builds.append(_entry(module, version, kernel, arch, "installed" if linked else "built"))
    return builds


def _entry(module, version, kernel, arch, status):
    return {"module": module, "version": version, "kernel": kernel, "arch": arch, "status": status}


def read_driver(tree, kernels, dkms):
    """Version of the NVIDIA kernel module that is loaded, and of the one that the next boot would load."""
    loaded = loaded_driver_version(tree)
    candidates = [kernels["running"]] + kernels["installed"][::-1] + kernels["headers"][::-1]
    for kernel in candidates:
        for entry in dkms:
            if entry["status"] == "installed" and entry["kernel"] == kernel and entry["module"].startswith("nvidia"):
                return {"loaded": loaded, "installed": entry["version"]}
        version = _module_file_version(tree, kernel)
        if version:
            return {"loaded": loaded, "installed": version}
    return {"loaded": loaded, "installed": None}


def loaded_driver_version(tree):
    """From /proc/driver/nvidia/version (``NVRM version: ... 535.261.03  Release Build``), else from /sys/module."""
    found = re.search(
        r"NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s", (tree.text("/proc/driver/nvidia/version") or "") + "\n"
    )
    return found.group(1) if found else tree.text("/sys/module/nvidia/version")


# Where packages put a module that they do not build with DKMS; Ubuntu's linux-modules-nvidia name a folder by branch.
MODULE_FOLDERS = (
    "updates",
    "updates/dkms",
    "extra",
    "extra/drivers/video/nvidia",
    "kernel/nvidia-*",
    "weak-updates/nvidia",
)
# The standard library below 3.14 cannot read zstd: the module is there, its version unknown.
MODULE_FILES = (("nvidia.ko", bytes), ("nvidia.ko.xz", lzma.decompress), ("nvidia.ko.zst", lambda data: b""))


def _module_file_version(tree, kernel):
    """``version=`` of an nvidia.ko that a package brought (no DKMS); None where it is not there or cannot be read."""
    for folder in _folders(tree, "/lib/modules/%s" % kernel):
        for name, unpack in MODULE_FILES:
            path = tree.path(tree.resolve("%s/%s" % (folder, name)))
            if os.path.isfile(path):
                return _version_in(path, unpack)
    return None


def _folders(tree, base):
    for folder in MODULE_FOLDERS:
        parent, dummy, last = ("%s/%s" % (base, folder)).rpartition("/")
        for name in fnmatch.filter(tree.names(parent), last):
            yield "%s/%s" % (parent, name)


def _version_in(path, unpack):
    with open(path, "rb") as stream:
        data = stream.read()
    try:
        found = re.search(rb"\0version=(\d+\.[\d.]+)\0", unpack(data))
    except lzma.LZMAError:
        return None
    return found.group(1).decode("ascii") if found else None
