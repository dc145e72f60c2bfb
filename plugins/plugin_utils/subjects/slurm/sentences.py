# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences for problems with what a user asks of role slurm, and with nodes that Slurm would take for something else."""

from __future__ import annotations

from ...problems.sentence import Sentence

SENTENCES = {
    "slurm_form": Sentence("{subject} is {value}", "write it like {example}"),
    "slurm_margin": Sentence("{subject} is {value}", "set it to at most {most} percent"),
    "slurm_no_word": Sentence(
        "{subject} has {value}",
        "a feature is one word of letters, digits and '_.+/-' that begins with a letter",
    ),
    "slurm_no_type": Sentence(
        "slurm_gpu_types has {subject} for {name}",
        "write a part of {reported}, which is what Slurm calls it, that begins with a letter",
    ),
    "slurm_no_controller": Sentence(
        "slurm_state is {state}, but the inventory has no hosts in the group {subject}",
        "list those there on which slurmctld runs",
    ),
    "slurm_unknown_version": Sentence(
        "It is not known which Slurm {subject} runs, since scontrol is not there",
        "set slurm_version to that of slurmctld, such as '24.11'",
    ),
    "slurm_not_configured": Sentence(
        "{subject} has no {directory}/slurm.conf",
        "set slurm_directory to where that file is, or take the host out of group controllers",
    ),
    "slurm_in_use": Sentence(
        "slurmctld and slurmd of {subject} do not start again without the files of the role that are to go: {lines}",
        "put node lines of your own in the place of these, as docs/slurm.md says, and run this again",
    ),
    "slurm_programs_in_use": Sentence(
        "Slurm drains {subject} without the programs of the role that are to go: {lines}",
        "remove these lines on the controllers and run 'scontrol reconfigure' there, or stop slurmd of that node",
    ),
    "slurm_cannot": Sentence(
        "Slurm {subject} does not have {meaning}, which came with {since}",
        "update Slurm, or do not ask for it",
    ),
    "slurm_unmeasured": Sentence(
        "{subject}: not measured in this run, and Slurm would lose what the files no longer name",
        "run without --limit, make them reachable, or set slurm_state: absent for them",
    ),
    "slurm_no_nodes": Sentence(
        "No host of group gpu_nodes has slurm_state: {state}, so the files of {subject} would name none",
        "set it for the nodes, too",
    ),
    "slurm_no_packages": Sentence(
        "There is no Slurm for {subject}: the role installs that of {known}, not of {system}",
        "install Slurm yourself and set slurm_state: external",
    ),
    "slurm_two_controllers": Sentence(
        "slurm_state: present is for one controller, and group {subject} has {hosts}",
        "leave one, or set slurm_state: external for a cluster that you run yourself",
    ),
    "slurm_controller_is_node": Sentence(
        "{subject} is in groups controllers and gpu_nodes, which slurm_state: present does not support",
        "take another host as controller, or set slurm_state: external",
    ),
    "slurm_no_login_node": Sentence(
        "{subject} is in groups login_nodes and {group}, where Slurm's commands are anyway",
        "take it out of login_nodes",
    ),
    "slurm_foreign": Sentence(
        "{subject} has a {directory}/slurm.conf that this role did not write",
        "set slurm_state: external to describe the nodes to that cluster, or remove the file",
    ),
    "slurm_no_address": Sentence("The address of {subject} is not known", "set gpu_cluster_address"),
    "slurm_old_release": Sentence(
        "{subject} has Slurm {node}, which slurmctld {controller} of {host} does not take",
        "upgrade the older of both, or set slurm_state: absent for the node",
    ),
    "slurm_no_cgroups": Sentence(
        "The kernel of {subject} does not give cgroups the controllers cpu, cpuset and memory",
        "set slurm_cgroups: false for all hosts, with which jobs are not confined to their GPUs, or repair that",
    ),
    "slurm_not_ready": Sentence(
        "Slurm's controller {subject} was not set up in this run",
        "make it reachable, run without --limit, and set slurm_state: present for it, too",
    ),
    "slurm_no_line": Sentence(
        "slurm_extra_lines has {value}",
        "write each as Key=Value, without comments and continuations",
    ),
    "slurm_written_key": Sentence(
        "slurm_extra_lines has {subject}, which the role writes itself",
        "remove that line, or set slurm_state: external",
    ),
    "slurm_no_account_name": Sentence(
        "{variable} has the name {subject!r}",
        "write one of lower-case letters, digits and '_.-' that begins with a letter, other than root",
    ),
    "slurm_twice": Sentence("{variable} has {subject} twice", "leave one"),
    "slurm_no_limit": Sentence(
        "{variable} has {key}: {value} for {subject}", "write a whole number from {least} to {most}"
    ),
    "slurm_no_preempted": Sentence(
        "slurm_qos lets {subject} preempt {other}, which is not another name in slurm_qos", "declare it there"
    ),
    "slurm_no_parent": Sentence(
        "slurm_accounts puts {subject} below {other}, which it does not have", "declare that account, too"
    ),
    "slurm_circle": Sentence(
        "slurm_accounts puts {subject} below itself", "change its parent, or that of an account above it"
    ),
    "slurm_no_user_name": Sentence(
        "slurm_accounts has the user {subject!r} in {account}",
        "write a login name in lower case, other than root, which has Slurm's own account",
    ),
    "slurm_user_twice": Sentence("slurm_accounts has the user {subject} twice in {account}", "leave one"),
    "slurm_no_default_qos": Sentence(
        "slurm_accounts has default_qos: {other} for {subject}, which is not in its qos", "add it there"
    ),
    "slurm_unknown_qos": Sentence(
        "slurm_accounts gives {account} the QoS {subject}, which slurm_qos does not have", "declare it there"
    ),
    "slurm_present_only": Sentence(
        "{subject} is for slurm_state: present", "remove it, and declare that with sacctmgr on your cluster"
    ),
    "slurm_external_only": Sentence(
        "{subject} is for slurm_state: external",
        "remove it, since the distribution's Slurm decides that",
    ),
    "slurm_no_plugin": Sentence(
        "{subject} is nvml, whose plugin is not among the packages of the role",
        "set it to none or nvidia",
    ),
    "slurm_no_switch": Sentence(
        "{subject}: not at a switch, while other nodes have slurm_switch, and jobs could not have them together",
        "set it for them, too",
    ),
    "slurm_switch_above": Sentence(
        "slurm_switch is {subject} for a node, and other switches are below that one",
        "name the switch below it that the node is at",
    ),
    "slurm_switch_root": Sentence(
        "slurm_switch is {subject}, and 'root' is what the role calls the uppermost switch", "take another name"
    ),
    "slurm_same_name": Sentence(
        "{nodes} are all called {subject} by Slurm",
        "give them other host names, or, with slurm_state: external, set slurm_node_name for them",
    ),
    "slurm_no_node_name": Sentence(
        "{subject} is called '{name}', which Slurm does not take for a node",
        "give it another host name, or, with slurm_state: external, set slurm_node_name",
    ),
    "slurm_other_name": Sentence(
        "{subject} calls itself '{name}', and Slurm would have to know it as '{expected}'",
        "give it that host name, or, with slurm_state: external, set slurm_node_name to the one that it has",
    ),
    "slurm_no_processors": Sentence(
        "The kernel of {subject} does not show the topology of its processors",
        "set slurm_state: absent for it",
    ),
    "slurm_no_memory": Sentence(
        "The kernel of {subject} does not show how much memory there is",
        "set slurm_state: absent for it",
    ),
    "slurm_uneven": Sentence(
        "The sockets of {subject} do not have equally many cores and threads, which Slurm requires",
        "switch all processors on, or set slurm_numa_node_as_socket to the other value",
    ),
    "slurm_no_device": Sentence(
        "{subject} of {host} has no device file, since no driver has it",
        "repair that, or set slurm_state: absent for the node",
    ),
    "slurm_no_instance": Sentence(
        "{instance} on {subject} of {host} has no device files of its own",
        "create the MIG instance again",
    ),
    "slurm_no_profile": Sentence(
        "The driver does not name the profile of {instance} on {subject} of {host}",
        "update the driver",
    ),
    "slurm_split_socket": Sentence(
        "The GPUs of {subject} are near a part of a socket, and Slurm 24.11 and newer refuses a node of which it detects that",
        "set slurm_autodetect: none, or slurm_numa_node_as_socket: true and SlurmdParameters=numa_node_as_socket in "
        "slurm.conf",
    ),
    "slurm_undetected_instances": Sentence(
        "{subject} has MIG instances, which AutoDetect=nvidia does not find",
        "set slurm_autodetect to none or nvml",
    ),
    "slurm_unfit_type": Sentence(
        "A GPU of {host} is called {subject}, which Slurm cannot take for a type",
        "name a part of it in slurm_gpu_types",
    ),
}
