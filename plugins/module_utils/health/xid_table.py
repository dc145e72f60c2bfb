# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The meaning of the driver's Xid numbers for a node: one class each, with the source; what is not here is for a person to look at."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

# "Analyzing Xid Errors with the Xid Catalog", https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html: its immediate
# action stands behind the name.
CATALOG = "NVIDIA Xid catalog: "
OPEN_MODULES = "NVIDIA/open-gpu-kernel-modules, "
# Tools that act on Xids in clusters: aws-samples/awsome-distributed-training, 2.gpu-cluster-healthcheck.
HEALTHCHECK = "awsome-distributed-training, gpu-cluster-healthcheck: "

# What becomes of a node: the severity of the finding, and what to do. "application": the node is well.
CLASSES = {
    "application": ("note", "look at the application"),
    "monitor": ("degraded", "look the Xid up, and call the vendor if it comes back"),
    "reset": ("failed", "drain the node and reset the GPU; reboot if that fails"),
    "reboot": ("failed", "drain and reboot the node"),
    "isolate": ("failed", "take the node out of service; check power and seating of the GPU"),
}
# (class, Xids, source)
ROWS = (
    ("application", (8, 11, 13, 25, 31, 32, 39, 40, 41, 60, 68, 69, 70, 71, 72, 75, 76, 77, 80, 82, 83, 84, 85, 86, 88, 89),
     CATALOG + "RESTART_APP"),
    ("application", (94, 96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 126, 127, 128, 129, 130, 131, 132, 133, 134, 135, 139),
     CATALOG + "RESTART_APP"),
    ("application", (43,), CATALOG + "IGNORE; the application that used the GPU has ended"),
    ("application", (45,), CATALOG + "WORKFLOW_XID_45: follows another Xid, which is judged itself"),
    ("application", (106, 107), CATALOG + "IGNORE: test messages"),
    ("monitor", (14, 37, 38, 44, 66, 67, 92, 93, 108, 121, 137, 141, 152, 153, 157, 160, 161), CATALOG + "IGNORE, a person looks"),
    ("monitor", (63,), CATALOG + "IGNORE: a row was remapped, which check row_remapping judges"),
    ("monitor", (162, 163, 164, 165), CATALOG + "no action: power smoothing"),
    ("monitor", (171, 172), CATALOG + "additional to Xid 48, with details"),
    ("reset", (46, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158), CATALOG + "RESET_GPU"),
    ("reset", (48,), CATALOG + "WORKFLOW_XID_48; Xid 154 says whether a reboot is needed"),
    ("reset", (74,), CATALOG + "WORKFLOW_NVLINK_ERR"),
    ("reset", (159,), CATALOG + "CHECK_UVM; " + HEALTHCHECK + "reset where unified memory is in use"),
    ("reboot", (79,), CATALOG + "RESTART_BM"),
    ("reboot", (151,), CATALOG + "RESTART_VM"),
    ("reboot", (168,), HEALTHCHECK + "reboot"),
    ("isolate", (54,), CATALOG + "CHECK_MECHANICALS"),
)  # fmt: skip
XIDS = {xid: name for name, xids, dummy_source in ROWS for xid in xids}
OTHERS = "monitor"

# What another class cures where something else is so, too: (class, Xid, words, what must be so, source). ``gpu``: pattern of NVML's name;
# ``mig``: its mode; ``alone``: no other Xid of that GPU; ``fabric``: it is not well; ``uvm``: nvidia_uvm is loaded, None: not known.
CONTEXT = (
    ("configure", 45, "45 alone, while the fabric is not healthy", {"alone": True, "fabric": True},
     CATALOG + "WORKFLOW_XID_45: solo RESTART_FM; without such a fabric it is what an ended application leaves"),
    ("reboot", 64, "64 on A100", {"gpu": r"\bA100\b"}, HEALTHCHECK + "a failed row of A100 needs a reboot"),
    ("reboot", 95, "95 on A100 without MIG", {"gpu": r"\bA100\b", "mig": False}, HEALTHCHECK + "A100 without MIG needs a reboot"),
    ("monitor", 159, "159 where nvidia_uvm is not loaded", {"uvm": False},
     CATALOG + "CHECK_UVM, SYMPATHETIC_REPORT_SOLO: without unified memory it follows another Xid, or is reported"),
)  # fmt: skip

# "XID 144-150 Decode" of the catalog: what calls itself fatal is RESET_GPU, the others IGNORE or what Xid 154 says. Of the fatal ones
# only two causes of a link that is down are IGNORE: bits 20 to 25 of the first word behind NETIR_LINK_EVT (leptonai/gpud has the sheet as
# components/accelerator/nvidia/xid/catalog_generated.go).
NVLINK5 = range(144, 151)
LINK_DOWN_IGNORED = (0x26, 0x28)

# Xid 154, "GPU recovery action changed from 0x… to 0x…": the driver's own demand. Numbers as NVML_GPU_RECOVERY_ACTION_* of nvml.h;
# the words next to them differ by driver ("GPU Reset Required" or "PF FLR"). What they ask for:
# https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html
RECOVERY_CHANGED = 154
RECOVERY_ACTIONS = {
    1: ("reset", "reset the GPU"),
    2: ("reboot", "reboot the node"),
    3: ("reset", "drain peer-to-peer traffic"),
    4: ("reset", "drain and reset the GPU"),
    5: ("monitor", "recover the IMEX domain"),
    6: ("reset", "reset the GPU's PCIe bus"),
    7: ("reboot", "reboot the system"),
}


def class_of(xid, fatal=None, gpu=None, around=None):
    """Return the class of an Xid.

    ``fatal``: whether an event of NVLink 5 calls itself that, ``gpu``: of gpu_node, where it is known, ``around``: {alone, fabric, uvm}
    of CONTEXT.
    """
    if xid in NVLINK5:
        return "reset" if fatal else "monitor"
    for row in CONTEXT if gpu else ():
        if xid == row[1] and holds(row[3], gpu, around or {}):
            return row[0]
    return XIDS.get(xid, OTHERS)


def holds(condition, gpu, around):
    """Return True if a context is given; what is not known is not."""
    facts = dict(around, mig=bool((gpu.get("mig") or {}).get("current")))
    named = re.search(condition.get("gpu", ""), gpu.get("name") or "")
    return bool(named) and all(facts.get(key) is wanted for key, wanted in condition.items() if key != "gpu")
