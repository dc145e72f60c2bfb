# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One sentence for each problem with the user's input: what is wrong, the value, what to set instead."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .problem import Problem

# Names of hosts in one sentence; a thousand would hide what it says.
SHOWN = 8

SENTENCES = {
    "missing_address": "No default IPv4 address on {nodes}; set gpu_cluster_address there.",
    "invalid_address": "gpu_cluster_address of {subject} is '{address}'; set it to an IP address.",
    "shared_address": (
        "{nodes} have the same cluster address {subject}; set gpu_cluster_address of each to the address "
        "at which the others reach it."
    ),
    "no_training_nodes": "Group gpu_nodes has no hosts; list the nodes to train on there.",
    "training_count": (
        "train_nodes is {subject}, but group gpu_nodes has {available} hosts; set a number from 1 to {available}, or names."
    ),
    "training_unknown": "train_nodes names {unknown}, not in group gpu_nodes; choose from {available}.",
    "training_absent": (
        "{nodes} should train but take no part in this play; remove the limit, serial or failure that keeps them "
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
    "wrong_nproc": "nproc_per_node is '{subject}'; set it to auto or to a number from 1.",
    "wrong_port": "port is {subject}; set it to a number from 1 to 65535.",
    "short_lease": "lease is {subject} s; set it to {least} s or more.",
    "lock_unreadable": "{subject} is not a stack lock; restore it, or delete it to plan again.",
    "lock_format": (
        "{subject} has lock format {found}, but this collection reads format {supported}; delete the file to plan again."
    ),
    "lock_outdated": (
        "{subject} no longer fits this host: {changes}; plan with stack_lock_renew=true to see the difference and "
        "take it over."
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
    "result_unreadable": (
        "{subject} cannot be read ({error}); run the train playbook again, or delete {directory} to report without "
        "that run."
    ),
    "result_format": (
        "{subject} has format {found}, but this collection reads format {supported}; run the train playbook again, or "
        "delete {directory} to report without that run."
    ),
    "report_not_read": "{subject} cannot be read ({error}); correct its permissions, or set another report_directory.",
    "report_not_written": (
        "{subject} cannot be written ({error}); free some space or correct its permissions, or set another "
        "report_directory."
    ),
}


def describe(problem: Problem) -> str:
    """Return the sentence for one problem."""
    values = {name: _words(value) for name, value in problem.detail.items()}
    return SENTENCES[problem.code].format(subject=problem.subject, **values)


def describe_all(problems: Iterable[Problem]) -> str:
    """Return the sentences for several problems, each once."""
    return " ".join(dict.fromkeys(describe(problem) for problem in problems))


def _words(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        more = len(value) - SHOWN
        return ", ".join(str(one) for one in value[:SHOWN]) + (f" and {more} more" if more > 0 else "")
    return str(value)
