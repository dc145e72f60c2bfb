# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Data centre bridging of a port: which priority a class of traffic has, and which priorities lose nothing.

The text is what ``dcb -j … show`` of iproute2 prints; ``run`` is ansible_module.program_output.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json

PRIORITIES = range(8)
PLACES = ("/usr/sbin/dcb", "/sbin/dcb", "/usr/bin/dcb", "/bin/dcb")
# Its daemon sets what a switch tells it.
AGENT = "lldpad"


def has_program(tree):
    return any(tree.exists(path) for path in PLACES)


def has_agent(tree):
    """Return True if an LLDP agent runs that sets the ports by itself."""
    return any(tree.text("/proc/%s/comm" % name) == AGENT for name in tree.names("/proc") if name.isdigit())


def read_port(run, interface):
    """Return {apps, default, pfc, ets, buffers, dcbx}; None for each part that the port does not have.

    apps: {DSCP: priority}; pfc: priorities that lose nothing; ets: {tsa, bandwidth, classes: class of each priority};
    buffers: {of: buffer of each priority, sizes: bytes}; dcbx: its flags.
    """
    shown = {part: show(run, part, interface) for part in ("app", "pfc", "ets", "buffer", "dcbx")}
    return {
        "apps": shown["app"] and {str(dscp): priority for dscp, priority in shown["app"].get("dscp_prio", [])},
        "default": shown["app"] and (shown["app"].get("default_prio") or [0])[0],
        "pfc": shown["pfc"] and [index for index, on in enumerate(shown["pfc"]["prio_pfc"]) if on in (True, "on")],
        "ets": shown["ets"]
        and {
            "tsa": shown["ets"]["tc_tsa"],
            "bandwidth": shown["ets"]["tc_bw"],
            "classes": shown["ets"]["prio_tc"],
        },
        "buffers": shown["buffer"] and {"of": shown["buffer"]["prio_buffer"], "sizes": shown["buffer"]["buffer_size"]},
        "dcbx": shown["dcbx"] and sorted(key for key, on in shown["dcbx"].items() if on),
    }


def show(run, part, interface):
    """Return the output of dcb as a mapping that is never empty; None where the port does not have it."""
    text = run(["dcb", "-j", part, "show", "dev", interface])
    if not text:
        return None
    shown = json.loads(text)
    return shown or {"": None}
