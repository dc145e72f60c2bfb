# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""List a node's kernels, the running one, their headers, and what DKMS has built for them."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from .boot import next_boot, version_key


def read_kernels(tree, run, listed=""):
    """Return the contract's ``kernel`` mapping.

    ``installed`` are kernels that can be booted, not directories of leftovers. A kernel has ``headers`` where a module
    can be compiled for it, where kbuild's Makefile is: on Enterprise Linux the link to its directory comes with the
    kernel, the rest with kernel-devel, and what a build wrote there stays when kernel-devel goes. ``run`` takes an
    argument list and returns the program's output; ``listed`` is what rpm says is installed.
    """
    installed = {name[len("vmlinuz-") :] for name in tree.names("/boot") if name.startswith("vmlinuz-")}
    installed = {name for name in installed if "rescue" not in name}
    headers = set()
    for name in tree.names("/lib/modules"):
        if tree.exists("/lib/modules/%s/modules.builtin" % name):
            installed.add(name)
        if tree.exists(tree.resolve("/lib/modules/%s/build" % name) + "/Makefile"):
            headers.add(name)
    ordered = sorted(installed, key=version_key)
    return {
        "running": tree.text("/proc/sys/kernel/osrelease"),
        "installed": ordered,
        "headers": sorted(headers, key=version_key),
        "newest": ordered[-1] if ordered else None,
        "next_boot": next_boot(tree, run) if ordered else None,
        "partial": [name for name in ordered if is_partial(name, listed)],
        "driver_modules": {name: has_driver_module(tree, name) for name in ordered},
    }


def is_partial(kernel, listed):
    """Return True if rpm has the core of a kernel and not its modules: the disks, and not the network, for example.

    ``listed``: lines of NAME EPOCH:VERSION-RELEASE. A flavour is told by what follows '+' in the release (64k, rt).
    """
    release, dummy, flavour = kernel.partition("+")
    name, version = "kernel-" + (flavour + "-" if flavour else ""), release.rpartition(".")[0]
    lines = listed.splitlines()
    return "%score 0:%s" % (name, version) in lines and "%smodules 0:%s" % (name, version) not in lines


def has_driver_module(tree, kernel):
    """Return True if modprobe finds the NVIDIA modules under this kernel; None where its list of modules is not there.

    depmod lists what DKMS built and what packages brought alike, compressed or not. nvidia-uvm is asked for: CUDA needs
    it, and nothing else has such a name (Debian says nvidia-current-uvm).
    """
    modules = tree.text("/lib/modules/%s/modules.dep" % kernel)
    return None if modules is None else re.search(r"(?m)^[^:]*\bnvidia(-[\w-]+)?-uvm\.ko(\.\w+)?:", modules) is not None


# Modules in addition to the driver's that a service of ours may need.
WATCHED = ("ib_umad",)
BOOT_FOLDERS = ("/etc/modules-load.d", "/run/modules-load.d", "/usr/lib/modules-load.d", "/lib/modules-load.d")


def read_modules(tree, names=WATCHED):
    """Return {module: {``loaded``, ``at_boot``: whether systemd loads it then}}."""
    boot = set()
    for folder in BOOT_FOLDERS:
        for name in tree.names(folder):
            text = tree.text("%s/%s" % (folder, name)) if name.endswith(".conf") else None
            boot.update(line.strip().replace("-", "_") for line in (text or "").splitlines())
    return {name: {"loaded": tree.exists("/sys/module/" + name), "at_boot": name in boot} for name in names}


def read_dkms(tree):
    """Return the entries that ``dkms status`` would print, read from its tree.

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


def read_driver(tree, run, kernels, dkms):
    """Return the versions of the NVIDIA kernel module that is loaded, and of the one that the next boot would load."""
    loaded = loaded_driver_version(tree)
    candidates = [kernels["next_boot"], kernels["running"]] + kernels["installed"][::-1] + kernels["headers"][::-1]
    for kernel in [name for name in candidates if name]:
        for entry in dkms:
            if entry["status"] == "installed" and entry["kernel"] == kernel and entry["module"].startswith("nvidia"):
                return {"loaded": loaded, "installed": entry["version"]}
        if kernels["driver_modules"].get(kernel):
            # Packages compress a module as the distribution's kernel reads it, and modinfo as well.
            version = run(["modinfo", "-k", kernel, "-F", "version", "nvidia"])
            return {"loaded": loaded, "installed": (version or "").strip() or None}
    return {"loaded": loaded, "installed": None}


def loaded_driver_version(tree):
    """Read /proc/driver/nvidia/version (``NVRM version: ... 535.261.03  Release Build``), else /sys/module.

    None without either.
    """
    found = re.search(
        r"NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s", (tree.text("/proc/driver/nvidia/version") or "") + "\n"
    )
    return found.group(1) if found else tree.text("/sys/module/nvidia/version")
