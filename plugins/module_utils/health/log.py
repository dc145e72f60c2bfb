# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge what the kernel's log says of this node's GPUs and NVSwitches."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..machine.topology import gpu_label
from .findings import fault, judged
from .kernel_log import find_events, is_whole
from .xid_table import RECOVERY_ACTIONS, RECOVERY_CHANGED, class_of

CHECK, EXPECTED = "xid", "no events"
LEFT = "no events in what is left of the log"
SWITCH_ACTION = "check the fabric manager's log; reset the GPUs behind the switch"
GSP_XIDS = (119, 120)
# {kind of an event that has no number: (fault, what was measured)}
WITHOUT_NUMBER = {
    "off_bus": ("reboot", "fallen off the bus"),
    "init": ("reboot", "initialisation failed"),
    "probe": ("reboot", "the driver could not set the GPU up"),
    "unsupported": ("unsupported", "not supported by this driver"),
    "bar": ("bar", "the firmware gave it no address space"),
    "gsp": ("gsp", "the GPU's firmware (GSP) does not answer"),
    "reset": ("reset", "the driver refuses what it is asked for until the GPU is reset"),
}


# Of gpu_node, which say that the fabric between the GPUs is not well.
FABRIC_PROBLEMS = ("fabric_not_ready", "fabric_unhealthy")


def judge_log(node, text, limits, uvm=None):
    """Judge the events that still count, ``limits``' ``ignored_xids`` aside; ``text`` None: the log could not be read.

    ``uvm``: whether nvidia_uvm is loaded, None where that is not known.
    """
    if text is None:
        return judged(CHECK, EXPECTED, None, [fault(CHECK, "unreadable", EXPECTED, None)])
    gpus = {without_function(gpu["pci_bus_id"]): gpu for gpu in node["gpus"]}
    switches = {without_function(address) for address in node["nvswitches"]["pci_bus_ids"]}
    events = find_events(text, numbers_of(gpus))
    # Containers share the ring buffer with others: what is not of this node does not condemn it.
    own = [event for event in events if event["address"] in gpus and event["kind"] != "sxid"]
    own = [event for event in own if not is_told_better(event, own)]
    demanded = {event["address"]: event["number"] for event in own if event["kind"] == "recovery"}
    sxids = [event for event in events if event["address"] in switches and event["kind"] == "sxid"]
    found = [switch_finding(event) for event in sxids]
    around = {"uvm": uvm, "fabric": any(one["code"] in FABRIC_PROBLEMS for one in node["findings"])}
    for event in own:
        gpu, name = gpus[event["address"]], None
        if event["kind"] == "xid":
            name = class_of(event["number"], event["fatal"], gpu, dict(around, alone=is_alone(event, own)))
        if name == "application" and limits["ignored_xids"] is not None:
            name = "told"
        if not is_ignored(event, limits["ignored_xids"]):
            found.append(gpu_finding(event, name, gpu, demanded, any(one["fatal"] for one in sxids)))
    if is_whole(text):
        return judged(CHECK, EXPECTED, EXPECTED, found)
    # What was overwritten may have told of a GPU that nothing else tells of.
    found.append(fault(CHECK, "wrapped", EXPECTED, LEFT))
    return judged(CHECK, EXPECTED, LEFT, found)


def numbers_of(gpus):
    """Return {number of a GPU in the driver's log: address}; the log of some drivers has no number, which tells enough of an only GPU."""
    numbers = {gpu["index"]: address for address, gpu in gpus.items() if gpu["index"] is not None}
    if len(gpus) == 1:
        numbers[None] = next(iter(gpus))
    return numbers


def without_function(address):
    return address.rpartition(".")[0]


def is_told_better(event, events):
    """Return True if another event of the GPU says the same in more detail."""
    others = [one for one in events if one["address"] == event["address"] and one["kind"] != event["kind"]]
    if event["kind"] == "gsp":
        return any(one["kind"] == "xid" and one["number"] in GSP_XIDS for one in others)
    if event["kind"] == "reset":
        return any(one["kind"] in ("recovery", "gsp") or condemns(one) for one in others)
    return event["kind"] == "probe" and any(one["kind"] in ("off_bus", "unsupported", "bar") for one in others)


def condemns(event):
    """Return True if an event is an Xid after which the GPU cannot be used."""
    return event["kind"] == "xid" and class_of(event["number"], event["fatal"]) in ("reset", "reboot", "isolate")


def is_alone(event, events):
    """Return True if the GPU has told no other Xid."""
    same = [one for one in events if one["kind"] == "xid" and one["address"] == event["address"]]
    return {one["number"] for one in same} == {event["number"]}


def is_ignored(event, ignored):
    """Return True if an event is not a finding: an Xid that the user named, or what is told with it."""
    if event["kind"] == "recovery":
        return RECOVERY_CHANGED in (ignored or ())
    if event["kind"] == "gsp":
        return set(GSP_XIDS) <= set(ignored or ())
    return event["kind"] == "xid" and event["number"] in (ignored or ())


def gpu_finding(event, name, gpu, demanded, switch_failed):
    """Find fault with a GPU; what the driver itself asks for goes before the number. ``name``: the class of an Xid."""
    kind, action = event["kind"], None
    if kind == "recovery":
        name, action = RECOVERY_ACTIONS.get(event["number"], ("monitor", None))
        text = "Xid %d: %s" % (RECOVERY_CHANGED, action or "recovery action %d" % event["number"])
    elif kind == "xid":
        text = "Xid %d" % event["number"]
        action = RECOVERY_ACTIONS.get(demanded.get(event["address"]), (None, None))[1]
        if event["number"] == 74 and switch_failed:
            action = SWITCH_ACTION
    else:
        name, text = WITHOUT_NUMBER[kind]
        # A driver that tried again and reached the GPU tells that to NVML only.
        if kind not in ("off_bus", "gsp", "reset") and "nvml" in gpu["seen_by"]:
            name = "monitor"
    return fault(CHECK, name, EXPECTED, text, gpu_label(gpu), action)


def switch_finding(event):
    """Find fault with an NVSwitch; what it says is not fatal needs no action (NVIDIA Fabric Manager User Guide)."""
    text = "SXid %d of NVSwitch %s" % (event["number"], event["address"])
    name = "reset" if event["fatal"] else "monitor"
    return fault(CHECK, name, EXPECTED, text, None, SWITCH_ACTION)
