# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge what NVMe drives say of themselves; pure. Bytes of the log: NVM Express Base Specification, SMART / Health Information (02h)."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from .findings import fault, judged

CHECK, EXPECTED = "nvme_health", "well"
# Bits of the byte Critical Warning: (bit, fault, what it says of the drive).
WARNINGS = (
    (0x01, "spare", "its spare is below its own threshold"),
    (0x02, "hot", "a temperature beyond its own limits"),
    (0x04, "unreliable", "media or internal errors have made it unreliable"),
    (0x08, "read_only", "it no longer accepts writes"),
    (0x10, "warns", "the backup of its volatile memory has failed"),
    (0x20, "warns", "its persistent memory region is read-only or unreliable"),
)
KNOWN = 0x3F


def nvme_health(host, limits):
    """Judge the drives that could be asked, and tell of those that could not; ``host``: see host_reading."""
    drives = host.get("nvme") or []
    found = [one for drive in drives for one in of_drive(drive, limits)]
    return [judged(CHECK, EXPECTED, "%d well" % len(drives), found)] if drives else []


def of_drive(drive, limits):
    """Return the findings of one drive, whose name stands in what was measured."""
    if drive["page"] is None:
        code = "forbidden" if drive["refused"] == "permission" else "silent"
        return [fault(CHECK, code, EXPECTED, "%s: not known (%s)" % (drive["name"], drive["refused"]))]
    page = decode(drive["page"])
    told = [(code, words) for bit, code, words in WARNINGS if page["warning"] & bit]
    if page["warning"] & ~KNOWN:
        told.append(("warns", "a warning of a later specification (0x%02x)" % (page["warning"] & ~KNOWN)))
    if page["spare"] < page["threshold"] and not page["warning"] & 0x01:
        told.append(("spare", "%d %% of its spare left, its threshold is %d %%" % (page["spare"], page["threshold"])))
    if page["used"] >= limits["nvme_used_percent"]:
        told.append(("worn", "%d %% of its rated writes" % page["used"]))
    if page["media_errors"] > limits["max_nvme_media_errors"]:
        told.append(("media_errors", "%d media errors" % page["media_errors"]))
    return [fault(CHECK, code, EXPECTED, "%s: %s" % (drive["name"], words)) for code, words in told]


def decode(digits):
    """Return {warning, spare, threshold, used, media_errors} of the log; per cent, and a number of 16 bytes."""
    page = bytes.fromhex(digits)
    return {
        "warning": page[0],
        "spare": page[3],
        "threshold": page[4],
        "used": page[5],
        "media_errors": int.from_bytes(page[160:176], "little"),
    }
