# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences for problems with what a user asks of role rdma, and with nodes on which it cannot be done."""

from __future__ import annotations

SENTENCES = {
    "rdma_no_doca": (
        "rdma_stack is {subject}, whose repository's key cannot be verified from a public source; set it to inbox, or install "
        "DOCA-OFED yourself and set it to none."
    ),
    "rdma_no_fixed_name": (
        "rdma_fixed_names has {subject} with the name {value}; write a GUID such as b8ce:f603:0077:8ab4 and a name of letters, digits "
        "and underscores."
    ),
    "rdma_no_interface_name": "rdma_interfaces has '{subject}', which is not the name of an interface; correct it.",
    "rdma_no_traffic_class": "rdma_traffic_class is '{subject}'; set it to a number from 0 to 255, four times the DSCP.",
    "rdma_no_ipoib": "rdma_ipoib has {subject} with {value}; set its mode to datagram or connected, and its mtu.",
    "rdma_no_mtu": "rdma_ipoib gives {subject} the mtu {value}; in mode {mode} set it to {largest} at most.",
    "rdma_unknown_roce": "rdma_roce has {subject}; choose from {known}.",
    "rdma_no_parts": "rdma_roce has {value} for {subject}; write a dictionary, such as {example}.",
    "rdma_no_number": "rdma_roce has {value} for {subject}; set it to a number from 0 to {most}.",
    "rdma_lossy": "rdma_roce gives training priority {subject}, which is not in pfc ({pfc}); add it there, or leave pfc out.",
    "rdma_no_ets": (
        "rdma_roce has {value} for ets; give priorities 0 and {subject} a percentage or strict each, with percentages that sum to 100."
    ),
    "rdma_no_program": (
        "{subject} is declared for RoCE, and this node lacks the program dcb, which sets it; install iproute2 5.11 or later, or leave "
        "rdma_roce empty here."
    ),
    "rdma_foreign_owner": (
        "The DCB settings of {subject} belong to {owner}, which would undo what is declared; stop it, or leave rdma_roce empty here."
    ),
    "rdma_lacks_interface": "{variable} has {subject}, which this node lacks; choose from {interfaces}, or leave it out here.",
}
