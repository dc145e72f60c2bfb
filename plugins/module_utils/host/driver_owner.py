# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find other owners of a node's driver: the vendor of its image, or the host whose kernel it runs on."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

# linux/capability.h
CAP_SYS_MODULE = 16
# What tells an image whose driver its vendor builds and updates: the file, the code, the name, and what the file must contain.
IMAGES = (
    ("/opt/azurehpc/component_versions.txt", "azure_hpc", "the Azure HPC image", "NVIDIA"),
    ("/opt/deeplearning/metadata/env_version", "google_dlvm", "the Google Deep Learning VM image", ""),
    ("/var/lib/dpkg/info/lambda-stack-cuda.list", "lambda_stack", "Lambda Stack", ""),
)


def read_driver_owner(tree, container):
    """Return {``code``, ``name``}; None where the node's driver has no other owner.

    The codes are ``wsl``, ``container``, ``dgx_os``, ``azure_hpc``, ``google_dlvm`` and ``lambda_stack``.
    """
    if "microsoft" in (tree.text("/proc/sys/kernel/osrelease") or "").lower() and tree.exists("/dev/dxg"):
        return {"code": "wsl", "name": "Windows (WSL)"}
    if container and not may_load_modules(tree):
        return {"code": "container", "name": "the host of this container"}
    release = tree.text("/etc/dgx-release")
    if release is not None:
        return {"code": "dgx_os", "name": dgx_name(release)}
    for path, code, name, content in IMAGES:
        if content in (tree.text(path) or "") and tree.exists(path):
            return {"code": code, "name": name}
    return None


def may_load_modules(tree):
    """Return True if root of this container may load kernel modules: Docker, LXC and systemd-nspawn take that right away.

    A container that has it is treated as the machine it wants to be.
    """
    found = re.search(r"(?m)^CapBnd:\s*([0-9a-f]+)$", tree.text("/proc/1/status") or "")
    return found is None or bool(int(found.group(1), 16) >> CAP_SYS_MODULE & 1)


def dgx_name(text):
    """Return ``DGX OS 7.2.1``: the last update over the air, else the image."""
    versions = re.findall(r"(?m)^DGX_(?:OTA|SWBUILD)_VERSION=\"?([^\"\s]+)", text)
    return " ".join(["DGX OS"] + versions[-1:])
