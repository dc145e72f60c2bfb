# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge for which part of the time the hardware or the driver has slowed a GPU down for its heat; pure, see nic_history."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from .findings import fault, judged

CHECK = "throttling_time"
WINDOW = 900  # seconds
SHORTEST = 30  # a shorter time says nothing


def follow(known, gpus, clock, limits):
    """Return ([entry of judged], the GPUs for the next state).

    ``known``: {GPU: [[uptime, nanoseconds] …]}, ``gpus``: {GPU: nanoseconds of thermal slowdown since the driver's load, or None}.
    """
    after, found, most = {}, [], limits["max_thermal_percent"]
    for name, total in sorted(gpus.items()):
        if total is None:
            continue
        pairs = [pair for pair in known.get(name, ()) if 0 <= clock["uptime"] - pair[0] <= WINDOW and pair[1] <= total]
        after[name] = pairs + [[clock["uptime"], total]]
        seconds = clock["uptime"] - after[name][0][0]
        share = 100e-9 * (total - after[name][0][1]) / seconds if seconds >= SHORTEST else 0
        if share > most:
            text = "%d %% of the last %d minutes" % (round(share), max(round(seconds / 60.0), 1))
            found.append(fault(CHECK, "thermal", "at most %d %% of the time" % most, text, name))
    entries = [judged(CHECK, "at most %d %%" % most, "%d GPUs" % len(after), found)] if after else []
    return entries, after
