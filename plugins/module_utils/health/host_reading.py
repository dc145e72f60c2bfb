# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what tells of the health of the machine around the GPUs; starts no program."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type


def read_host(sys_tree, proc_tree):
    """Return {``uptime_seconds``: None where it is not known}."""
    return {"uptime_seconds": read_uptime(proc_tree)}


def read_uptime(tree):
    """Return the seconds since boot, as the first number of /proc/uptime has them."""
    try:
        return float((tree.text("/uptime") or "").split()[0])
    except (ValueError, IndexError):
        return None
