# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that modules share which measure a machine, or a recorded one."""

from __future__ import annotations


class ModuleDocFragment:
    """Options that say where a module finds the hardware."""

    DOCUMENTATION = r"""
options:
  sysfs_root:
    description: Where sysfs is; set it to examine a recorded machine.
    type: path
    default: /sys
  procfs_root:
    description: Where procfs is; set it to examine a recorded machine.
    type: path
    default: /proc
  nvml_library:
    description: Name or path of the NVML library of the driver.
    type: str
    default: libnvidia-ml.so.1
"""
