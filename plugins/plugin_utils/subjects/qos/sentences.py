# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences for problems with what a user asks of role qos, and with nodes on which it cannot be done."""

from __future__ import annotations

from ...problems.sentence import Sentence

SENTENCES = {
    "qos_no_rate": Sentence("{subject} is {value}", "write a rate as tc takes it, such as 10gbit or 800mbit"),
    "qos_no_share": Sentence(
        "{subject} is {value}",
        "write a rate as tc takes it, such as 8gbit, or a part of the link such as 80%",
    ),
    "qos_no_port": Sentence(
        "qos_ports has {subject}",
        "write a port from 1 to 65535 or a range such as '50000-50999'",
    ),
    "qos_no_dscp": Sentence("qos_dscp has {subject}", "write a number from 0 to 63"),
    "qos_no_address": Sentence(
        "qos_extra_peers has {subject}",
        "write an IP address or a network such as 10.0.0.0/24",
    ),
    "qos_no_cgroup_name": Sentence(
        "qos_cgroups has {subject}",
        "write a path below /sys/fs/cgroup such as training.slice",
    ),
    "qos_no_cgroup": Sentence(
        "qos_cgroups has {subject}, which does not exist below /sys/fs/cgroup on this node",
        "create it, or take it out",
    ),
    "qos_no_interface_name": Sentence(
        "qos_interfaces has '{subject}', which is not the name of an interface",
        "correct it",
    ),
    "qos_no_interface": Sentence("qos_interfaces has {subject}, which this node lacks", "choose from {interfaces}"),
    "qos_lacks_interface": Sentence(
        "qos_interfaces has {subject}, which is missing on {nodes}",
        "choose from {interfaces}",
    ),
    "qos_foreign_address": Sentence(
        "No interface of this node has {subject}",
        "set gpu_cluster_address to an address that it has, or qos_interfaces",
    ),
    "qos_unknown_peer": Sentence(
        "The training address of {subject} is not known, and without it {subject} would have no share",
        "set gpu_cluster_address there, or run without --limit",
    ),
    "qos_no_tc": Sentence(
        "This node has no tc, which creates the classes",
        "install package iproute2, or iproute-tc on Red Hat systems",
    ),
    "qos_no_module": Sentence(
        "The kernel of this node has no {subject}",
        "install the distribution's package of extra modules (linux-modules-extra, kernel-modules-extra), or leave the node "
        "out with qos_state: absent",
    ),
    "qos_unknown_rate": Sentence(
        "The speed of {subject} is not known",
        "set qos_rate to what the link carries, such as 10gbit",
    ),
    "qos_too_fast": Sentence(
        "{subject} is {rate}, and HTB, which takes one lock for every packet, costs too much above {most}",
        "set qos_rate to at most {most}, name a slower interface in qos_interfaces, or leave shares to the adapter's queues "
        "(mqprio, ETS)",
    ),
    "qos_rate_above_link": Sentence("qos_rate is {rate}, but {subject} carries {speed}", "set it to at most that"),
    "qos_share_too_large": Sentence(
        "The guarantee is {subject}, the ceiling {ceiling} and the link {link}",
        "set qos_guarantee to at most qos_ceiling, and qos_ceiling to at most the link",
    ),
    "qos_nothing_left": Sentence(
        "The guarantee is {subject} of {link}, which leaves nothing for other traffic",
        "set qos_guarantee to at most 99%",
    ),
    "qos_default_ceiling": Sentence(
        "qos_default_ceiling is {subject}",
        "set it between {rest}, which training always leaves, and {link}",
    ),
    "qos_foreign_qdisc": Sentence(
        "{subject} has the queueing discipline {kind} {handle}, which another program has set and which could not be restored",
        "remove it with 'tc qdisc del dev {subject} root', or name other interfaces in qos_interfaces",
    ),
    "qos_foreign_ingress": Sentence(
        "{subject} has filters of another program for incoming packets ({kind})",
        "remove them, or set qos_ingress: false",
    ),
    "qos_many_filters": Sentence(
        "Incoming packets would be matched against {subject} filters in turn, and {most} is the limit",
        "name the nodes' network in qos_extra_peers instead of single addresses, or set qos_ingress: false",
    ),
    "qos_ingress_cgroups": Sentence(
        "Incoming packets have no control group yet, so those of {subject} cannot be told apart",
        "set qos_ingress: false, or use qos_ports instead of qos_cgroups",
    ),
}
