# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what the loaded NVIDIA kernel module reports below /proc/driver."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from .sysfs import normalise_address


def read_driver(tree):
    """Return {``loaded_version``, ``kernel_modules`` (open|proprietary)} of the loaded module, both None without."""
    text = tree.text("/driver/nvidia/version") or ""
    line = next((line for line in text.splitlines() if line.startswith("NVRM version:")), None)
    if line is None:
        return {"loaded_version": None, "kernel_modules": None}
    found = re.search(r"\s(\d+\.\d+(?:\.\d+)?)(?:\s|$)", line)
    return {
        "loaded_version": found.group(1) if found else None,
        "kernel_modules": "open" if "Open Kernel Module" in line else "proprietary",
    }


def read_gpus(tree):
    """Return {pci_bus_id: {``name``, ``uuid``, ``minor_number``}} of the GPUs the module has bound, hidden ones too."""
    gpus = {}
    for entry in tree.names("/driver/nvidia/gpus"):
        text = tree.text("/driver/nvidia/gpus/%s/information" % entry) or ""
        fields = {
            key.strip(): value.strip() for key, dummy, value in (line.partition(":") for line in text.splitlines())
        }
        minor, uuid = fields.get("Device Minor", ""), fields.get("GPU UUID", "")
        gpus[normalise_address(entry)] = {
            "name": fields.get("Model") or None,
            "uuid": uuid if uuid.startswith("GPU-") and "?" not in uuid else None,
            "minor_number": int(minor) if minor.isdigit() else None,
        }
    return gpus
