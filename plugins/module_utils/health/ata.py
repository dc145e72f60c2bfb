# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge what ATA drives said of themselves when they were last asked; pure, see nic_history."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from .findings import judged
from .nic_history import told

CHECK, EXPECTED = "ata_health", "well"


def follow(known, reading, clock, limits):
    """Return ([entry of judged], the drives for the next state).

    ``known``: those of the state, ``reading``: see ata_log.read_ata, None in a run that did not ask.
    """
    after = known if reading is None else dict(reading, at=clock["uptime"])
    drives = after.get("drives") or {}
    if not drives:
        return [], after
    if not after["tool"]:
        return [judged(CHECK, EXPECTED, None)], after  # not judged, see over_time.is_left_out
    found = [one for name, drive in sorted(drives.items()) for one in of_drive(name, drive, limits)]
    return [judged(CHECK, EXPECTED, "%d well" % len(drives), found)], after


def of_drive(name, drive, limits):
    """Return the findings of one drive."""
    if drive["refused"]:
        return [told(CHECK, "silent", EXPECTED, "not known (%s)" % drive["refused"], name)]
    found = [] if drive["passed"] else [told(CHECK, "failing", EXPECTED, "its self-test says that it is failing", name)]
    if drive["failing"]:
        text = "at their threshold: %s" % ", ".join(drive["failing"])
        found.append(told(CHECK, "attribute", EXPECTED, text, name))
    if drive["sectors"] > limits["max_bad_sectors"]:
        text = "%d sectors that cannot be read" % drive["sectors"]
        found.append(told(CHECK, "sectors", "at most %d sectors" % limits["max_bad_sectors"], text, name))
    return found
