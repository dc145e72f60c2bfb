# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Format the diffs of steps for ``--diff``: each file by itself, all others together."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..host.kept_files import readable


def diffs(steps):
    """Return [{before_header, after_header, before, after}]."""
    shown = [_diff(one["subject"], one["before"] or "", one["after"] or "") for one in steps if one["kind"] == "file"]
    rest = [one for one in steps if one["kind"] != "file"]
    if rest:
        texts = [
            "".join("%s: %s\n" % (one["subject"], _word(one[side])) for one in rest) for side in ("before", "after")
        ]
        shown.append(_diff("scratch", *texts))
    return shown


def _diff(header, before, after):
    return readable({"before_header": header, "after_header": header, "before": before, "after": after})


def _word(value):
    if isinstance(value, dict):
        return "%(uid)s:%(gid)s %(mode)s" % value
    return "absent" if value is None else value
