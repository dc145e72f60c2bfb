# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One sentence for each problem with the user's input: what is wrong, the value, what to set instead."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .phrases import clean
from .problem import Problem
from .scope import Scope

# Names of hosts in one sentence; a thousand would hide what it says.
SHOWN = 8
# Characters of a value.
LONGEST = 80

SENTENCES = {
    "unreadable_file": "{subject} cannot be read at line {line}, column {column} ({error}); correct the file.",
    "no_gpu_nodes": "The inventory ({sources}) has no hosts in the group gpu_nodes; list the hosts with GPUs there.",
    "no_inventory": "The inventory {subject} does not exist; name yours with -i.",
    "empty_inventory": (
        "Ansible read no hosts from the inventory ({sources}); its warnings above say why. Correct that, or name another inventory with -i."
    ),
    "limit_without_gpu_nodes": "The limit {subject} leaves no host of the group gpu_nodes; choose from {nodes}.",
    "misspelt_tag": "No task has the tag {subject}; did you mean {nearest}?",
    "unknown_tag": "No task has the tag {subject}; choose from {tags}.",
    "misspelt_variable": "Unknown variable {subject} ({scope}); did you mean {nearest}?",
    "unknown_variable": (
        "Unknown variable {subject} ({scope}); role {role} has no such option. 'ansible-doc -t role "
        "allreduce.gpu.{role}' lists them. Name it in preflight_ignore if it belongs to something else."
    ),
    "facts_become_variables": (
        "Ansible's setting {subject} is on, its default: a node could then set variables of its own on the controller, such as "
        "cluster_ssh_authorized_keys. Set inject_facts_as_vars = false under [defaults] in ansible.cfg, or ANSIBLE_INJECT_FACT_VARS=false in "
        "the environment; facts are then read as ansible_facts.NAME only."
    ),
    "undefined_variable": "{subject} ({scope}) uses {names}, which nothing defines for {nodes}; define it, or correct the template.",
    "wrong_type": "{subject} ({scope}) is {value}; set it to {type}.",
    "number_without_quotes": "{subject} ({scope}) is the number {value} to YAML, as {value}0 would be; write what you mean in quotes.",
    "wrong_choice": "{subject} ({scope}) is {value}; choose from {choices}.",
    "misspelt_key": "{subject} ({scope}) is not a known key; did you mean {nearest}?",
    "unknown_key": "{subject} ({scope}) is not a known key; choose from {keys}.",
    "missing_key": "{subject} ({scope}) lacks {key}; set that key, too.",
    "unreachable": (
        "{count} of {total} nodes cannot be reached, so nothing was touched: {lost}; check power, address, SSH user and key."
    ),
    "not_root": (
        "{count} of {total} nodes do not let the SSH user become root, so nothing was touched: {lost}; allow it to "
        "use sudo there, or give its password with -K."
    ),
    "no_facts": "Facts of {subject} cannot be gathered ({error}); correct that.",
    "some_lost": "The others answer ({count}); run the command again with --limit '{limit}' to go on with them alone.",
    "run_in_progress": (
        "{user} has been running site on {subject} since {since} (process {pid}); wait for its end, or stop it. What was interrupted "
        "can be run again."
    ),
    "run_elsewhere": (
        "{user} has been running site on {subject} since {since} from {machine} (process {pid}); wait for its end. If that process "
        "is gone, remove {file}."
    ),
    "run_not_noted": (
        "This run cannot be noted in {subject} ({error}), so a second one on the same nodes would not be refused; make that directory writable."
    ),
    "missing_address": "No default IPv4 address on {nodes}; set gpu_cluster_address there.",
    "invalid_address": "gpu_cluster_address of {subject} is '{address}'; set it to an IP address.",
    "loopback_address": (
        "The cluster address of {subject} is {address}, which leads every node to itself; set gpu_cluster_address to the address at which "
        "the other nodes reach it."
    ),
    "few_cpus": (
        "{ranks} ranks of {subject} share CPU {cpus}, as it has fewer CPUs near its GPUs than ranks; give the machine more CPUs, or start "
        "fewer ranks with train_nproc_per_node."
    ),
    "shared_address": (
        "{nodes} have the same cluster address {subject}; set gpu_cluster_address of each to the address "
        "at which the others reach it."
    ),
    "invalid_public_key": (
        "The public key of the user on {subject} (id_{kind}.pub) is not one that OpenSSH writes; remove it together with its "
        "private key, and the next run makes a new pair."
    ),
    "changed_host_key": (
        "{subject} answers with the host key {key}, but the cluster knows it by {known}: it was reinstalled, or another host answers in its "
        "place; if 'ssh-keygen -lf' at its console shows the same, set cluster_ssh_accept_host_keys: {{{subject}: "
        "'{key}'}}."
    ),
    "invalid_host_key": (
        "{subject} is left out: its {kind} host key is not one that OpenSSH writes; repair /etc/ssh/ssh_host_{kind}_key.pub there, or take "
        "{subject} out of the inventory."
    ),
    "unfit_answer": (
        "{subject} is left out: its {place} is {shown}, but it must be {expected}; find out why, and repair it or take it out of the "
        "inventory."
    ),
    "unfit_record": (
        "{subject} is left out: its /etc/allreduce/nodes.json is not a record of nodes; find out why, and delete the file there, or take "
        "{subject} out of the inventory."
    ),
    "unfit_entries": (
        "{count} entries of /etc/allreduce/nodes.json on {subject} do not fit and are not used; the next run without --limit replaces them."
    ),
    "name_of_another": (
        "{subject} is left out: it calls itself {name}, the name of another host of the inventory; correct it there with "
        "'hostnamectl set-hostname'."
    ),
    "foreign_domain": (
        "{subject} is left out: it calls itself {name}, which is neither in the domain of an inventory name nor begins with its own; if that "
        "is right, set cluster_ssh_domains: ['{domain}'], else correct it there with 'hostnamectl set-hostname'."
    ),
    "address_of_another": (
        "{subject} is left out: it has the address {address}, which the inventory gives to {owner}; set gpu_cluster_address of {subject} to "
        "the address at which the others reach it."
    ),
    "partial_rotation": (
        "cluster_ssh_rotate asks for new keys, which needs all nodes at once, and {absent} {takes} no part in this run; run again "
        "without --limit and serial when they answer, or remove cluster_ssh_rotate."
    ),
    "no_host_name": (
        "The host name of {nodes} is '{subject}', the default of a host without a name; give each a name of its own with "
        "'hostnamectl set-hostname'."
    ),
    "shared_host_name": (
        "{nodes} have the same host name {subject}; give each a name of its own with 'hostnamectl set-hostname'."
    ),
    "no_training_nodes": "Group gpu_nodes has no hosts; list the nodes to train on there.",
    "training_count": (
        "{variable} is {subject}, but group gpu_nodes has {available} hosts; set a number from 1 to {available}, or names."
    ),
    "training_unknown": "{subject} names hosts outside group gpu_nodes: {unknown}; choose from {available}.",
    "training_absent": (
        "{nodes} should train but {takes} no part in this play; remove the limit, serial or failure that keeps them "
        "out, or choose other nodes."
    ),
    "too_few_forks": (
        "Training on {nodes} nodes needs as many forks, but Ansible runs with {forks}; "
        "add '-f {nodes}' to the command line."
    ),
    "missing_file": "{subject} names {name}, which does not exist in {directories}; set it to a path that exists.",
    "script_not_file": "The training script {subject} is not a file; set train_script to one.",
    "file_absent": "{subject} does not exist on the controller; name a file that does, best by its absolute path.",
    "wrong_arguments": "The script's arguments '{subject}' cannot be split ({error}); give a list.",
    "wrong_nproc": "nproc_per_node is '{subject}'; set it to auto or to a number of at least 1.",
    "wrong_port": "port is {subject}; set it to a number from 1 to 65535.",
    "wrong_reference": "{subject} is {value}; set it to {needs}.",
    "unfit_node_name": "Slurm cannot call {subject} '{name}'; set slurm_node_name to what it is in slurm.conf.",
    "uneven_gpus": "A job of Slurm's has as many GPUs on every node, and the nodes have {counts}; name equal ones in train_nodes.",
    "unknown_launcher": "There is no launcher '{subject}'; set train_launcher to one of {choices}.",
    "elastic_alone": (
        "train_launcher is {subject}, which continues without lost nodes, but the run has {nodes} node; set train_nodes to "
        "two or more, or train_launcher to torchrun."
    ),
    "elastic_without_restarts": (
        "max_restarts is {subject}, but the remaining ranks have to restart when one is lost; set it to 1 or more, or the launcher to "
        "torchrun."
    ),
    "wrong_min_nodes": "train_min_nodes is {subject}, but the run has {nodes} nodes; set a number from 1 to {nodes}, or 0 for all.",
    "horovod_ipv6": (
        "The cluster address of {subject} is {address}, and horovodrun takes IPv4 only; set gpu_cluster_address to an IPv4 address, or "
        "train_launcher to torchrun."
    ),
    "min_nodes_unused": (
        "train_min_nodes is {subject}, but train_launcher {launcher} needs all nodes; set train_launcher to elastic, or leave "
        "train_min_nodes out."
    ),
    "wrong_watch_interval": (
        "watch_interval is {subject} s; set it to 0 to watch nothing, or to the seconds between two readings of the GPUs."
    ),
    "short_lease": "lease is {subject} s; set it to {least} s or more.",
    "wrong_request": "gpu_stack_request is {value}; set it to a dictionary such as {{driver: '535'}}.",
    "key_of_others": "The request has {subject}, for which the plan has no version; leave it out: {reason}.",
    "unknown_request_key": "The request has no key '{subject}'; did you mean {nearest}?",
    "wrong_kernel": (
        "kernel is '{subject}'; write a release as uname -r prints it, such as 6.8.0-84-generic, or the beginning of one, such as 6.8."
    ),
    "wrong_mig": "mig is '{subject}'; write enabled, or an instance profile such as 1g.10gb.",
    "key_without_gpu": "The request has {subject}, and the host has no GPU; leave {subject} out, or set gpu_stack_host if it has one.",
    "wrong_compiler": "gcc is '{subject}'; write the version of the host's g++ in digits, such as '12'.",
    "no_gpu": "{subject} computes on GPUs only, and the host has none; leave {subject} out, or set gpu_stack_host if it has one.",
    "no_wheels": (
        "The package index has {subject} as source only, and role frameworks installs wheels only; put a wheel of it into an index or "
        "a directory of python_env_find_links and set wheels to site in gpu_stack_request, or leave {subject} out."
    ),
    "needs_framework": "The request has {subject} without {others}, which it is made for; ask for one, or leave {subject} out.",
    "unknown_profile": "There is no profile '{subject}'; the nearest ones are {nearest}.",
    "unknown_architecture": "Architecture '{subject}' is not supported; choose x86_64 or aarch64.",
    "unknown_os": "Operating system '{subject}' is not supported; the nearest supported ones are {nearest}.",
    "no_os": "No operating system is given; set os to a name and a version such as 'ubuntu 22.04'.",
    "counted_gpu": "gpus has '{subject}'; list {model} {count} times, once for each GPU.",
    "unknown_gpu": "GPU '{subject}' is not known; the nearest known ones are {nearest}.",
    "no_driver_left": (
        "The driver is left to {subject}, but none is installed or loaded; install it the way that {subject} does, or set "
        "gpu_stack_take_charge to true, so that this collection installs it."
    ),
    "retired_key": (
        "{subject} is {value}, a key that NVIDIA's repository has not been signed with since April 2022: a mirror signed with that key "
        "alone has nothing newer; mirror the repository again and use its key {today}."
    ),
    "no_guest_driver": (
        "{subject} is a vGPU, and no driver is installed or loaded; install the guest driver of NVIDIA's vGPU software that fits the "
        "hypervisor's (NVIDIA-Linux-*-grid.run of the NVIDIA Licensing Portal), or set gpu_stack_take_charge to true, driver_source to "
        "runfile, driver to its version and nvidia_driver_runfile to its path. No package repository has it."
    ),
    "unknown_gpu_id": (
        "The GPU at {address} with PCI device id {subject} ({name}) is not in the tables; set gpu_stack_gpu_models to a "
        "known model for it, such as {{'{subject}': B200}}."
    ),
    "wrong_pci_id": (
        "gpu_stack_gpu_models names '{subject}', which is not a PCI device id; write its four hexadecimal digits in "
        "quotes, such as '2901'."
    ),
    "key_of_excluded": "{subject} is about {component}, which the request leaves out ({component}: none); remove one of the two.",
    "unknown_build": "{subject} {value} is not known; the builds of that release are {builds}.",
    "no_builds": "{subject} {value} names a build, and the releases of {subject} have no builds to choose from; remove what follows the plus sign.",
    "unknown_version": "{subject} {value} is not known; the nearest known ones are {nearest}.",
    "index_not_asked": "The package index was not queried for it (stack_read_index, python_env_no_index); a newer collection may have it.",
    "index_silent": (
        "The package index could not be read ({cause}); plan where it can be read and keep the lock, or use a newer collection, or a "
        "checkout of it in which 'make tables' has added the release."
    ),
    "index_lacks": "The package index has no stable release {value} with wheels, either; request one that it has.",
    "index_untold": (
        "The package index has it, but its metadata lacks what a plan needs; a newer collection may have it, as its tables are also read "
        "from documentation."
    ),
    "wrong_version": (
        "{subject} is {value}, which is not a version; write a version (12.4), a prefix (12), a range ('>=12,<13') or "
        "'latest'."
    ),
    "interpreter_unknown": (
        "{subject} ({scope}) is {value}; choose auto, distribution or standalone, or set it to the absolute path of an "
        "interpreter."
    ),
    "interpreter_relative": (
        "{subject} ({scope}) is {value}; set it to the absolute path of an interpreter, such as /usr/bin/python3.10."
    ),
    "interpreter_conda": (
        "{subject} ({scope}) is conda; set python_env_manager to conda instead, or {subject} to the absolute path of the Python of a "
        "conda environment."
    ),
    "manager_interpreter": (
        "{subject} ({scope}) is {value}, and python_env_manager is conda, whose environments have Pythons of their own; leave {subject} "
        "out, and name the version with python in gpu_stack_request."
    ),
    "interpreter_version": (
        "{subject} ({scope}) is {value}, whose name does not tell its version; name one that does, such as /usr/bin/python3.10, or "
        "set python in gpu_stack_request to its version, such as '3.10'."
    ),
    "package_no_requirement": (
        "{subject} ({scope}) has {value}, which is not a package requirement by name; write one such as catboost or 'mpi4py>=4.1'."
    ),
    "package_chosen": (
        "{subject} ({scope}) has {value}, which has to fit the driver and CUDA; request it as {component} in gpu_stack_request."
    ),
    "wrong_environment_name": (
        "{subject} is {value}; choose up to 32 letters, digits, _ and - that start with a letter and are not the name of a framework."
    ),
    "name_of_split": "{subject} is {value}, but environments is split, where each is called like its framework; leave {subject} out.",
    "wrong_word": "{subject} is {value}; choose from {choices}.",
    "lock_missing": "There is no lock {subject}; run the playbook plan, which writes it, and put it under version control.",
    "lock_unreadable": "{subject} is not a stack lock; restore it, or delete it to plan again.",
    "lock_format": (
        "{subject} has lock format {found}, but this collection reads format {supported}; delete the file to plan again."
    ),
    "lock_outdated": (
        "{subject} no longer fits this host: {changes}; plan with stack_lock_renew=true to see the difference and accept it."
    ),
    "no_report_directory": (
        "The report directory {subject} does not exist; run the verify playbook, which creates it, or set "
        "report_directory to the directory of its verify.json."
    ),
    "no_verification": (
        "{subject} has no verify.json; run the verify playbook, or set report_directory to the directory of its "
        "verify.json."
    ),
    "verification_unreadable": "{subject} cannot be read ({error}); run the verify playbook again.",
    "verification_format": (
        "{subject} has format {found}, but this collection reads format {supported}; run the verify playbook again."
    ),
    "verification_wrong_value": (
        "In {subject}, {place} is {value}, but it must be {expected}; run the verify playbook again."
    ),
    "result_unreadable": (
        "{subject} cannot be read ({error}); run the train playbook again, or delete {directory} to report without "
        "that run."
    ),
    "result_format": (
        "{subject} has format {found}, but this collection reads format {supported}; run the train playbook again, or "
        "delete {directory} to report without that run."
    ),
    "result_wrong_value": (
        "In {subject}, {place} is {value}, but it must be {expected}; run the train playbook again, or delete "
        "{directory} to report without that run."
    ),
    "benchmark_unreadable": (
        "{subject} cannot be read ({error}); run the benchmark playbook again, or delete {directory} to report without that run."
    ),
    "benchmark_format": (
        "{subject} has format {found}, but this collection reads format {supported}; run the benchmark playbook again, or delete "
        "{directory} to report without that run."
    ),
    "benchmark_wrong_value": (
        "In {subject}, {place} is {value}, but it must be {expected}; run the benchmark playbook again, or delete {directory} to "
        "report without that run."
    ),
    "selinux_no_modules": (
        "SELinux's boolean {subject} is on, so no kernel module can be loaded, not even the driver's; run "
        "'setsebool -P {subject} off' there, and turn it on again, without -P, once the driver is loaded."
    ),
    "report_not_read": "{subject} cannot be read ({error}); correct its permissions, or set another report_directory.",
    "report_not_written": (
        "{subject} cannot be written ({error}); free some space or correct its permissions, or set another "
        "report_directory."
    ),
    "controller_disk_full": "{subject} was not written, as its disk is full ({free} are free); free some space there and run this again.",
    "controller_file": "{subject} was not written ({error}); correct its permissions, or choose another place.",
    "unsafe_core": (
        "ansible-core {subject} runs what a node says as code on the controller (CVE-2024-11079); install {safe} or a newer release: "
        "pip install --upgrade 'ansible-core>={safe}'."
    ),
    "sbom_no_library": (
        "The controller lacks the Python package {subject}, which writes bills of materials; install it with 'pip install {subject}' next "
        "to Ansible, or leave stack_sbom empty."
    ),
    "pylock_no_uv": (
        "The controller has no {subject}, which resolves what stack_pylock asks for; install it with 'pip install uv', set stack_uv to its "
        "path, or leave stack_pylock empty."
    ),
    "lock_line": (
        "The line {subject} is not a package with one version and its SHA-256; uv writes no such line into a lock, so find out what did."
    ),
    "lock_twice": "Package {subject} has two lines; uv writes one for each package into a lock, so find out what wrote it.",
    "lock_long": "It has {subject} characters; no lock is so long, so find out what wrote it.",
    "lock_unmet": "It has {found} for the requirement {subject}; uv solves no such lock, so find out what wrote it.",
    "lock_kept": (
        "{subject} on the controller is not a lock of this request ({reason}); restore it from version control, or set frameworks_relock=true "
        "for one run to replace it."
    ),
    "conda_lock_line": (
        "{subject} in a lock of conda is not a package of python_env_conda_channels with its SHA-256; name the channel by its address there "
        "if it is one of yours, or else find out what wrote that line."
    ),
    "wheel_unreadable": "{subject} is not a wheel that all tools read alike ({reason}); find out what the node that compiled it did.",
    "wheel_large": "{subject} has {size} bytes; no wheel of Horovod is so large, so find out what the node that compiled it did.",
    "wheel_foreign": (
        "{subject} has {member}, which is not Horovod's; what stands beside its package could run as root, so find out what the node that "
        "compiled it did."
    ),
    "wheel_other": (
        "{subject} has other content on the controller than the node that compiled it said; run again, and if it stays so, find out why."
    ),
    "wheels_unreadable": (
        "What uv says of the wheels of the lock ({subject}) cannot be read; Python 3.11 or newer on the controller can, else install from the index."
    ),
    "wheels_other": "uv's list of wheels is not that of the lock: {subject}; find out what uv on that node did, else install from the index.",
    "no_lock_directory": "stack_lock is {subject}, and there is no directory {directory}; create it, or set another path.",
}


TYPES = {
    "bool": "true or false",
    "dict": "a dictionary",
    "float": "a number",
    "int": "a whole number",
    "list": "a list",
    "path": "a path",
    "str": "text",
}


def describe(problem: Problem, sentences: Mapping[str, str] | None = None) -> str:
    """Return the sentence for one problem. sentences: by code, for problems of settings subjects theirs."""
    values = {name: _words(name, value) for name, value in problem.detail.items()}
    sentence = (sentences or SENTENCES)[problem.code].format(
        subject=problem.subject, takes=_takes(problem.detail), **values
    )
    return clean(sentence)  # what a node said goes to a terminal


def describe_all(problems: Iterable[Problem], sentences: Mapping[str, str] | None = None) -> str:
    """Return the sentences for several problems, each once."""
    return " ".join(dict.fromkeys(describe(problem, sentences) for problem in problems))


def _takes(detail: Mapping[str, Any]) -> str:
    """Return the verb for the nodes that a sentence is about."""
    names = detail.get("absent") or detail.get("nodes")
    return "take" if isinstance(names, (list, tuple)) and len(names) > 1 else "takes"


def _words(name: str, value: Any) -> str:
    if isinstance(value, Scope):
        return _place(value)
    if name == "type":
        return TYPES.get(str(value), str(value))
    if name == "value":
        text = f"'{value}'" if isinstance(value, str) else json.dumps(value, default=str)
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    if name == "nodes" and isinstance(value, (list, tuple)):
        return _some(value)
    return ", ".join(str(one) for one in value) if isinstance(value, (list, tuple)) else str(value)


def _place(scope: Scope) -> str:
    if scope.kind == "hosts":
        return f"set for host{'s' if len(scope.names) > 1 else ''} {_some(scope.names)}"
    words = {"command_line": "set on the command line", "play": "set in the play", "here": "set for this host"}
    return words.get(scope.kind) or f"set for group {scope.names[0]}"


def _some(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")
