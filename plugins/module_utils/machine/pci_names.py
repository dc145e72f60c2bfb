# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look NVIDIA's devices up in the node's own PCI ID database: names for GPUs that no driver has named yet."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

# Where Debian's pci.ids and the hwdata of other distributions put the file.
DATABASES = ("/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids")


def read_names(device_ids, databases=DATABASES):
    """Return {device id: ``GA102GL [A40]``} from the first database that can be read; without what it does not know."""
    for database in databases if device_ids else ():
        try:
            with open(database, "rb") as stream:
                return parse_names(stream, set(device_ids))
        except (IOError, OSError):
            continue
    return {}


def parse_names(lines, wanted):
    """Search NVIDIA's section of the database, a sequence of bytes; device ids are numbers."""
    names, inside = {}, False
    for line in lines:
        if re.match(b"[0-9a-f]{4}  ", line):
            if inside:
                break
            inside = line.startswith(b"10de  ")
        elif inside and re.match(b"\t[0-9a-f]{4}  ", line) and int(line[1:5], 16) in wanted:
            names[int(line[1:5], 16)] = line[7:].decode("utf-8", "replace").strip()
    return names
