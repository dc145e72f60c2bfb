# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences of all problems but those of the settings subjects."""

from __future__ import annotations

from .sentence import Sentence

SENTENCES = {
    "unreadable_file": Sentence(
        "{subject} cannot be read at line {line}, column {column}",
        "correct the file",
        why="{error}",
    ),
    "no_gpu_nodes": Sentence(
        "The inventory ({sources}) has no hosts in the group gpu_nodes",
        "list the hosts with GPUs there",
    ),
    "no_inventory": Sentence("The inventory {subject} does not exist", "name yours with -i"),
    "empty_inventory": Sentence(
        "Ansible read no hosts from the inventory ({sources})",
        "read its warnings above, which name the cause, or name another inventory with -i",
    ),
    "limit_without_gpu_nodes": Sentence(
        "The limit {subject} leaves no host of the group gpu_nodes",
        "choose from {nodes}",
    ),
    "misspelt_tag": Sentence("No task has the tag {subject}", "did you mean {nearest}?"),
    "unknown_tag": Sentence("No task has the tag {subject}", "choose from {tags}"),
    "misspelt_variable": Sentence("Unknown variable {subject} ({scope})", "did you mean {nearest}?"),
    "unknown_variable": Sentence(
        "Unknown variable {subject} ({scope}); role {role} has no such option",
        "list them with 'ansible-doc -t role allreduce.gpu.{role}', or name the variable in preflight_ignore if it belongs to"
        " something else",
    ),
    "facts_become_variables": Sentence(
        "Ansible's setting {subject} is on",
        "set inject_facts_as_vars = false under [defaults] in ansible.cfg, or ANSIBLE_INJECT_FACT_VARS=false in the "
        "environment; facts are then read as ansible_facts.NAME only",
        why="its default, with which a node could set variables of its own on the controller, such as cluster_ssh_authorized_keys",
    ),
    "undefined_variable": Sentence(
        "{subject} ({scope}) uses {names}, which nothing defines for {nodes}",
        "define it, or correct the template",
    ),
    "wrong_type": Sentence("{subject} ({scope}) is {value}", "set it to {type}"),
    "number_without_quotes": Sentence(
        "YAML parsed {subject} ({scope}) as the number {value}",
        "quote the version: '{value}' or '{value}0'",
    ),
    "wrong_choice": Sentence("{subject} ({scope}) is {value}", "choose from {choices}"),
    "misspelt_key": Sentence("{subject} ({scope}) is not a known key", "did you mean {nearest}?"),
    "unknown_key": Sentence("{subject} ({scope}) is not a known key", "choose from {keys}"),
    "missing_key": Sentence("{subject} ({scope}) lacks {key}", "set that key, too"),
    "unreachable": Sentence(
        "{count} of {total} nodes cannot be reached, so nothing was touched: {lost}",
        "check power, address, SSH user and key",
    ),
    "not_root": Sentence(
        "{count} of {total} nodes do not let the SSH user become root, so nothing was touched: {lost}",
        "allow it to use sudo there, or give its password with -K",
    ),
    "no_facts": Sentence("Facts of {subject} cannot be gathered", "correct that", why="{error}"),
    "some_lost": Sentence(
        "The others answer ({count})",
        "run the command again with --limit '{limit}' to go on with them alone",
    ),
    "run_in_progress": Sentence(
        "{user} has been running site on {subject} since {since} (process {pid})",
        "wait for its end, or stop it. What was interrupted can be run again",
    ),
    "run_elsewhere": Sentence(
        "{user} has been running site on {subject} since {since} from {machine} (process {pid})",
        "wait for its end. If that process is gone, remove {file}",
    ),
    "run_not_noted": Sentence(
        "This run cannot be noted in {subject}, so a second one on the same nodes would not be refused",
        "make that directory writable",
        why="{error}",
    ),
    "missing_address": Sentence("No default IPv4 address on {nodes}", "set gpu_cluster_address there"),
    "invalid_address": Sentence("gpu_cluster_address of {subject} is '{address}'", "set it to an IP address"),
    "loopback_address": Sentence(
        "The cluster address of {subject} is {address}",
        "set gpu_cluster_address to the address at which the other nodes reach it",
        why="it leads every node to itself",
    ),
    "few_cpus": Sentence(
        "{ranks} ranks of {subject} share CPU {cpus}, as it has fewer CPUs near its GPUs than ranks",
        "give the machine more CPUs, or start fewer ranks with train_nproc_per_node",
    ),
    "shared_address": Sentence(
        "{nodes} have the same cluster address {subject}",
        "set gpu_cluster_address of each to the address at which the others reach it",
    ),
    "invalid_public_key": Sentence(
        "The public key of the user on {subject} (id_{kind}.pub) is not a valid OpenSSH public key",
        "delete the key pair there; the next run generates a new one",
    ),
    "changed_host_key": Sentence(
        "{subject} answers with the host key {key}, but the cluster knows it by {known}",
        "if 'ssh-keygen -lf' at its console shows the same, set cluster_ssh_accept_host_keys: {{{subject}: '{key}'}}",
        why="it was reinstalled, or another host answers in its place",
    ),
    "invalid_host_key": Sentence(
        "{subject} is left out: its {kind} host key is not one that OpenSSH writes",
        "repair /etc/ssh/ssh_host_{kind}_key.pub there, or take {subject} out of the inventory",
    ),
    "unfit_answer": Sentence(
        "{subject} is left out: its {place} is {shown}, but it must be {expected}",
        "find out why, and repair it or take it out of the inventory",
    ),
    "unfit_record": Sentence(
        "{subject} is left out: its /etc/allreduce/nodes.json is not a record of nodes",
        "find out why, and delete the file there, or take {subject} out of the inventory",
    ),
    "unfit_entries": Sentence(
        "{count} entries of /etc/allreduce/nodes.json on {subject} do not fit and are not used",
        "the next run without --limit replaces them",
    ),
    "name_of_another": Sentence(
        "{subject} is left out: it calls itself {name}, the name of another host of the inventory",
        "correct it there with 'hostnamectl set-hostname'",
    ),
    "foreign_domain": Sentence(
        "{subject} is left out: it calls itself {name}, which is neither in the domain of an inventory name nor begins with "
        "its own",
        "if that is right, set cluster_ssh_domains: ['{domain}'], else correct it there with 'hostnamectl set-hostname'",
    ),
    "address_of_another": Sentence(
        "{subject} is left out: it has the address {address}, which the inventory gives to {owner}",
        "set gpu_cluster_address of {subject} to the address at which the others reach it",
    ),
    "partial_rotation": Sentence(
        "cluster_ssh_rotate asks for new keys, which needs all nodes at once, and {absent} {takes} no part in this run",
        "run again without --limit and serial when they answer, or remove cluster_ssh_rotate",
    ),
    "no_host_name": Sentence(
        "The host name of {nodes} is '{subject}', the default of a host without a name",
        "give each a name of its own with 'hostnamectl set-hostname'",
    ),
    "shared_host_name": Sentence(
        "{nodes} have the same host name {subject}",
        "give each a name of its own with 'hostnamectl set-hostname'",
    ),
    "no_training_nodes": Sentence("Group gpu_nodes has no hosts", "list the nodes to train on there"),
    "training_count": Sentence(
        "{variable} is {subject}, but group gpu_nodes has {available} hosts",
        "set a number from 1 to {available}, or names",
    ),
    "training_unknown": Sentence(
        "{subject} names hosts outside group gpu_nodes: {unknown}",
        "choose from {available}",
    ),
    "training_absent": Sentence(
        "{nodes} should train but {takes} no part in this play",
        "remove the limit, serial or failure that keeps them out, or choose other nodes",
    ),
    "too_few_forks": Sentence(
        "Training on {nodes} nodes needs as many forks, but Ansible runs with {forks}",
        "add '-f {nodes}' to the command line",
    ),
    "missing_file": Sentence(
        "{subject} names {name}, which does not exist in {directories}",
        "set it to a path that exists",
    ),
    "script_not_file": Sentence("The training script {subject} is not a file", "set train_script to one"),
    "file_absent": Sentence(
        "{subject} does not exist on the controller",
        "name a file that does, best by its absolute path",
    ),
    "same_file_name": Sentence(
        "{paths} would both be {subject} next to the script",
        "rename one of them, or name a directory that has it",
    ),
    "not_plain_file": Sentence(
        "{subject} is a link or a special file, which does not travel to the nodes",
        "put a file in its place, or leave it out",
    ),
    "file_unreadable": Sentence(
        "{subject} cannot be read on the controller", "let Ansible's user read it", why="{error}"
    ),
    "wrong_arguments": Sentence("The script's arguments '{subject}' cannot be split", "give a list", why="{error}"),
    "wrong_nproc": Sentence("nproc_per_node is '{subject}'", "set it to auto or to a number of at least 1"),
    "wrong_run_id": Sentence("run_id is '{subject}'", "use up to 100 letters, digits, dots, dashes and underscores"),
    "used_run_id": Sentence("Run {subject} is below {directory} already", "give every run a run_id of its own"),
    "wrong_environment_variable": Sentence(
        "The script cannot have a variable '{subject}'",
        "write a name without '=', and no null character in its value",
    ),
    "wrong_port": Sentence("port is {subject}", "set it to a number from 1 to 65535"),
    "low_number": Sentence("{subject} is {value}", "set it to {least} or more"),
    "wrong_reference": Sentence("{subject} is {value}", "set it to {needs}"),
    "unfit_node_name": Sentence(
        "Slurm cannot call {subject} '{name}'",
        "set slurm_node_name to what it is in slurm.conf",
    ),
    "uneven_gpus": Sentence(
        "A job of Slurm's has as many GPUs on every node, and the nodes have {counts}",
        "name equal ones in train_nodes",
    ),
    "unknown_launcher": Sentence("There is no launcher '{subject}'", "set train_launcher to one of {choices}"),
    "elastic_alone": Sentence(
        "train_launcher is {subject}, which continues without lost nodes, but the run has {nodes} node",
        "set train_nodes to two or more, or train_launcher to torchrun",
    ),
    "elastic_without_restarts": Sentence(
        "max_restarts is {subject}, but the remaining ranks have to restart when one is lost",
        "set it to 1 or more, or the launcher to torchrun",
    ),
    "wrong_min_nodes": Sentence(
        "train_min_nodes is {subject}, but the run has {nodes} nodes",
        "set a number from 1 to {nodes}, or 0 for all",
    ),
    "horovod_ipv6": Sentence(
        "The cluster address of {subject} is {address}, and horovodrun takes IPv4 only",
        "set gpu_cluster_address to an IPv4 address, or train_launcher to torchrun",
    ),
    "min_nodes_unused": Sentence(
        "train_min_nodes is {subject}, but train_launcher {launcher} needs all nodes",
        "set train_launcher to elastic, or leave train_min_nodes out",
    ),
    "wrong_watch_interval": Sentence(
        "watch_interval is {subject} s",
        "set it to 0 to watch nothing, or to the seconds between two readings of the GPUs",
    ),
    "short_lease": Sentence("lease is {subject} s", "set it to {least} s or more"),
    "wrong_request": Sentence("gpu_stack_request is {value}", "set it to a dictionary such as {{driver: '535'}}"),
    "key_of_others": Sentence(
        "The request has {subject}, for which the plan has no version",
        "remove it from the request",
        why="{reason}",
    ),
    "unknown_request_key": Sentence("The request has no key '{subject}'", "did you mean {nearest}?"),
    "wrong_kernel": Sentence(
        "kernel is '{subject}'",
        "write a release as uname -r prints it, such as 6.8.0-84-generic, or the beginning of one, such as 6.8",
    ),
    "wrong_mig": Sentence("mig is '{subject}'", "write enabled, or an instance profile such as 1g.10gb"),
    "key_without_gpu": Sentence(
        "The request has {subject}, but this host has no GPU",
        "remove {subject} from the request, or declare the GPU in gpu_stack_host",
    ),
    "wrong_compiler": Sentence("gcc is '{subject}'", "write the version of the host's g++ in digits, such as '12'"),
    "no_gpu": Sentence(
        "{subject} requires a GPU, but this host has none",
        "remove {subject} from the request, or declare the GPU in gpu_stack_host",
    ),
    "no_wheels": Sentence(
        "The package index has {subject} as source only, and role frameworks installs wheels only",
        "put a wheel of it into an index or a directory of python_env_find_links and set wheels to site in gpu_stack_request,"
        " or leave {subject} out",
    ),
    "needs_framework": Sentence(
        "The request has {subject} without {others}, which it is made for",
        "ask for one, or leave {subject} out",
    ),
    "unknown_profile": Sentence("There is no profile '{subject}'", "the nearest ones are {nearest}"),
    "unknown_architecture": Sentence("Architecture '{subject}' is not supported", "choose x86_64 or aarch64"),
    "unknown_os": Sentence(
        "Operating system '{subject}' is not supported",
        "the nearest supported ones are {nearest}",
    ),
    "no_os": Sentence("No operating system is given", "set os to a name and a version such as 'ubuntu 22.04'"),
    "counted_gpu": Sentence("gpus has '{subject}'", "list {model} {count} times, once for each GPU"),
    "unknown_gpu": Sentence("GPU '{subject}' is not known", "the nearest known ones are {nearest}"),
    "no_driver_left": Sentence(
        "The driver is left to {subject}, but none is installed or loaded",
        "install it the way that {subject} does, or set gpu_stack_take_charge to true, so that this collection installs it",
    ),
    "retired_key": Sentence(
        "{subject} is {value}, a key that NVIDIA's repository has not been signed with since April 2022: a mirror signed with"
        " that key alone has nothing newer",
        "mirror the repository again and use its key {today}",
    ),
    "no_guest_driver": Sentence(
        "{subject} is a vGPU, and no driver is installed or loaded",
        "install the guest driver of NVIDIA's vGPU software that fits the hypervisor's (NVIDIA-Linux-*-grid.run of the NVIDIA"
        " Licensing Portal), or set gpu_stack_take_charge to true, driver_source to runfile, driver to its version and "
        "nvidia_driver_runfile to its path. No package repository has it",
    ),
    "unknown_gpu_id": Sentence(
        "The GPU at {address} with PCI device id {subject} ({name}) is not in the tables",
        "set gpu_stack_gpu_models to a known model for it, such as {{'{subject}': B200}}",
    ),
    "wrong_pci_id": Sentence(
        "gpu_stack_gpu_models names '{subject}', which is not a PCI device id",
        "write its four hexadecimal digits in quotes, such as '2901'",
    ),
    "key_of_excluded": Sentence(
        "{subject} is about {component}, which the request leaves out ({component}: none)",
        "remove one of the two",
    ),
    "unknown_build": Sentence("{subject} {value} is not known", "the builds of that release are {builds}"),
    "no_builds": Sentence(
        "{subject} {value} names a build, and the releases of {subject} have no builds to choose from",
        "remove what follows the plus sign",
    ),
    "unknown_version": Sentence("{subject} {value} is not known", "the nearest known ones are {nearest}"),
    "index_not_asked": Sentence(
        "The package index was not queried for it (stack_read_index, python_env_no_index)",
        "update the collection: a newer release may have it",
    ),
    "index_silent": Sentence(
        "The package index could not be read",
        "plan where it can be read and keep the lock, or use a newer collection, or a checkout of it in which 'make tables' "
        "has added the release",
        why="{cause}",
    ),
    "index_lacks": Sentence(
        "The package index has no stable release {value} with wheels, either",
        "request one that it has",
    ),
    "index_untold": Sentence(
        "The package index has it, but its metadata is incomplete",
        "update the collection: a newer release may support it",
    ),
    "wrong_version": Sentence(
        "{subject} is {value}, which is not a version",
        "write a version (12.4), a prefix (12), a range ('>=12,<13') or 'latest'",
    ),
    "interpreter_unknown": Sentence(
        "{subject} ({scope}) is {value}",
        "choose auto, distribution or standalone, or set it to the absolute path of an interpreter",
    ),
    "interpreter_relative": Sentence(
        "{subject} ({scope}) is {value}",
        "set it to the absolute path of an interpreter, such as /usr/bin/python3.10",
    ),
    "interpreter_conda": Sentence(
        "{subject} ({scope}) is conda",
        "set python_env_manager to conda instead, or {subject} to the absolute path of the Python of a conda environment",
    ),
    "manager_interpreter": Sentence(
        "{subject} ({scope}) is {value}, and python_env_manager is conda, whose environments have Pythons of their own",
        "leave {subject} out, and name the version with python in gpu_stack_request",
    ),
    "interpreter_version": Sentence(
        "{subject} ({scope}) is {value}, whose name does not tell its version",
        "name one that does, such as /usr/bin/python3.10, or set python in gpu_stack_request to its version, such as '3.10'",
    ),
    "package_no_requirement": Sentence(
        "{subject} ({scope}) has {value}, which is not a package requirement by name",
        "write one such as catboost or 'mpi4py>=4.1'",
    ),
    "package_chosen": Sentence(
        "{subject} ({scope}) has {value}, which has to fit the driver and CUDA",
        "request it as {component} in gpu_stack_request",
    ),
    "wrong_environment_name": Sentence(
        "{subject} is {value}",
        "choose up to 32 letters, digits, _ and - that start with a letter and are not the name of a framework",
    ),
    "name_of_split": Sentence(
        "{subject} is {value}, but environments is split, where each is called like its framework",
        "leave {subject} out",
    ),
    "wrong_word": Sentence("{subject} is {value}", "choose from {choices}"),
    "lock_missing": Sentence(
        "There is no lock {subject}",
        "run the playbook plan, which writes it, and put it under version control",
    ),
    "lock_unreadable": Sentence("{subject} is not a stack lock", "restore it, or delete it to plan again"),
    "lock_damaged": Sentence(
        "{place} in {subject} is {value}, but must be {expected}",
        "restore the file from version control, or delete it to plan again",
    ),
    "lock_format": Sentence(
        "{subject} has lock format {found}, but this collection reads format {supported}",
        "delete the file to plan again",
    ),
    "lock_outdated": Sentence(
        "{subject} no longer fits this host",
        "run the playbook plan with -e stack_lock_renew=true, which shows the difference and accepts it",
        why="{changes}",
    ),
    "no_report_directory": Sentence(
        "The report directory {subject} does not exist",
        "run the verify playbook, which creates it, or set report_directory to the directory of its verify.json",
    ),
    "no_verification": Sentence(
        "{subject} has no verify.json",
        "run the verify playbook, or set report_directory to the directory of its verify.json",
    ),
    "verification_unreadable": Sentence("{subject} cannot be read", "run the verify playbook again", why="{error}"),
    "verification_format": Sentence(
        "{subject} has format {found}, but this collection reads format {supported}",
        "run the verify playbook again",
    ),
    "verification_wrong_value": Sentence(
        "In {subject}, {place} is {value}, but it must be {expected}",
        "run the verify playbook again",
    ),
    "result_unreadable": Sentence(
        "{subject} cannot be read",
        "run the train playbook again, or delete {directory} to report without that run",
        why="{error}",
    ),
    "result_format": Sentence(
        "{subject} has format {found}, but this collection reads format {supported}",
        "run the train playbook again, or delete {directory} to report without that run",
    ),
    "result_wrong_value": Sentence(
        "In {subject}, {place} is {value}, but it must be {expected}",
        "run the train playbook again, or delete {directory} to report without that run",
    ),
    "benchmark_unreadable": Sentence(
        "{subject} cannot be read",
        "run the benchmark playbook again, or delete {directory} to report without that run",
        why="{error}",
    ),
    "benchmark_format": Sentence(
        "{subject} has format {found}, but this collection reads format {supported}",
        "run the benchmark playbook again, or delete {directory} to report without that run",
    ),
    "benchmark_wrong_value": Sentence(
        "In {subject}, {place} is {value}, but it must be {expected}",
        "run the benchmark playbook again, or delete {directory} to report without that run",
    ),
    "selinux_no_modules": Sentence(
        "SELinux's boolean {subject} is on, so no kernel module can be loaded, not even the driver's",
        "run 'setsebool -P {subject} off' there, and turn it on again, without -P, once the driver is loaded",
    ),
    "report_not_read": Sentence(
        "{subject} cannot be read",
        "correct its permissions, or set another report_directory",
        why="{error}",
    ),
    "report_not_written": Sentence(
        "{subject} cannot be written",
        "free some space or correct its permissions, or set another report_directory",
        why="{error}",
    ),
    "controller_disk_full": Sentence(
        "{subject} was not written, as its disk is full ({free} are free)",
        "free some space there and run this again",
    ),
    "controller_file": Sentence(
        "{subject} was not written",
        "correct its permissions, or choose another place",
        why="{error}",
    ),
    "unsafe_core": Sentence(
        "ansible-core {subject} runs what a node says as code on the controller (CVE-2024-11079)",
        "install {safe} or a newer release: pip install --upgrade 'ansible-core>={safe}'",
    ),
    "sbom_no_library": Sentence(
        "The controller lacks the Python package {subject}, which writes bills of materials",
        "install it with 'pip install {subject}' next to Ansible, or leave stack_sbom empty",
    ),
    "pylock_no_uv": Sentence(
        "The controller has no {subject}, which resolves what stack_pylock asks for",
        "install it with 'pip install uv', set stack_uv to its path, or leave stack_pylock empty",
    ),
    "lock_line": Sentence(
        "The line {subject} is not a package with one version and its SHA-256",
        "uv writes no such line into a lock, so find out what did",
    ),
    "lock_twice": Sentence(
        "Package {subject} has two lines",
        "uv writes one for each package into a lock, so find out what wrote it",
    ),
    "lock_long": Sentence("It has {subject} characters", "no lock is so long, so find out what wrote it"),
    "lock_request": Sentence(
        "It is the lock of request {subject}, not of {expected}",
        "a lock is for the request that its line '# request:' names",
    ),
    "lock_unmet": Sentence(
        "It has {found} for the requirement {subject}",
        "uv solves no such lock, so find out what wrote it",
    ),
    "lock_kept": Sentence(
        "{subject} on the controller is not a lock of this request",
        "restore it from version control, or set frameworks_relock=true for one run to replace it",
        why="{reason}",
    ),
    "conda_lock_line": Sentence(
        "{subject} in a lock of conda is not a package of python_env_conda_channels with its SHA-256",
        "name the channel by its address there if it is one of yours, or else find out what wrote that line",
    ),
    "wheel_unreadable": Sentence(
        "{subject} is not a wheel that all tools read alike",
        "find out what the node that compiled it did",
        why="{reason}",
    ),
    "wheel_large": Sentence(
        "{subject} has {size} bytes",
        "no wheel of Horovod is so large, so find out what the node that compiled it did",
    ),
    "wheel_foreign": Sentence(
        "{subject} has {member}, which is not Horovod's",
        "what stands beside its package could run as root, so find out what the node that compiled it did",
    ),
    "wheel_other": Sentence(
        "{subject} has other content on the controller than the node that compiled it said",
        "run again, and if it stays so, find out why",
    ),
    "wheels_unreadable": Sentence(
        "What uv says of the wheels of the lock ({subject}) cannot be read",
        "Python 3.11 or newer on the controller can, else install from the index",
    ),
    "wheels_other": Sentence(
        "uv's list of wheels is not that of the lock: {subject}",
        "find out what uv on that node did, else install from the index",
    ),
    "no_lock_directory": Sentence(
        "stack_lock is {subject}, and there is no directory {directory}",
        "create it, or set another path",
    ),
}
