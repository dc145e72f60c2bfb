# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences for problems with what a user asks of role firewall, and with nodes on which it cannot be done."""

from __future__ import annotations

from ...problems.sentence import Sentence

SENTENCES = {
    "firewall_no_address": Sentence("{subject} has {value}, which is not {kind} of a host", "correct it"),
    "firewall_no_port": Sentence(
        "{subject} has {value}",
        "write a port from 1 to 65535 or a range such as '50000-50999'",
    ),
    "firewall_port_range": Sentence(
        "firewall_port_range is '{subject}'",
        "set it to a range of at least {least} ports above 1023, such as '50000-50999'",
    ),
    "firewall_no_interface_name": Sentence(
        "firewall_interfaces has '{subject}', which is not the name of an interface",
        "correct it",
    ),
    "firewall_no_interface": Sentence(
        "firewall_interfaces has {subject}, which this node lacks",
        "choose from {interfaces}",
    ),
    "firewall_lacks_interface": Sentence(
        "firewall_interfaces has {subject}, which is missing on {nodes}",
        "choose from {interfaces}",
    ),
    "firewall_foreign_address": Sentence(
        "No interface of this node has {subject}",
        "set gpu_cluster_address and firewall_addresses to addresses that it has",
    ),
    "firewall_unknown_peer": Sentence(
        "The training address of {subject} is not known, and without it {subject} would be shut out",
        "set gpu_cluster_address there, or run without --limit",
    ),
    "firewall_two_owners": Sentence(
        "Both {subject} and {other} are active, and each undoes what the other does",
        "disable one of them",
    ),
    "firewall_other_owner": Sentence(
        "firewall_owner is {subject}, but the rules of this node belong to {found}",
        "set it to auto, or let {subject} take over first",
    ),
    "firewall_unknown_owner": Sentence(
        "{subject} refuses by default and was made with iptables, not by ufw or firewalld, so letting peers in would change "
        "rules of unknown origin",
        "let ufw, firewalld or nftables manage this node",
    ),
    "firewall_old_firewalld": Sentence(
        "firewalld {subject} has no policies",
        "install {least} or later from the distribution's updates",
    ),
    "firewall_unsaved": Sentence(
        "firewalld's zone {subject} has runtime rules that are not saved, and a reload would lose them",
        "save them with 'firewall-cmd --runtime-to-permanent', or drop them with 'firewall-cmd --reload'",
    ),
}
