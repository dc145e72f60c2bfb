# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CDI specifications of NVIDIA GPUs, which tell container engines what a container gets of the host."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

# What nvidia-ctk is told to write where its documentation has people do it, and what nvidia-cdi-refresh writes.
PATHS = ("/etc/cdi/nvidia.yaml", "/var/run/cdi/nvidia.yaml")
# Of the libraries that a specification mounts, the one that every driver has.
DRIVER = re.compile(r"/libcuda\.so\.(\d+(?:\.\d+)+)")


def read_specifications(tree):
    """Return {path: version of the driver that it is for} of those that are there; None where none is named."""
    return {path: _driver(tree.text(path)) for path in PATHS if tree.exists(path)}


def _driver(text):
    found = DRIVER.search(text or "")
    return found.group(1) if found else None
