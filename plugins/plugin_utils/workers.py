# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Ansible's workers inherit. Each task of each node is a fork, which would otherwise do the same again."""

from __future__ import annotations

import contextlib
import gc

from ansible.plugins.loader import action_loader, connection_loader, filter_loader, lookup_loader, test_loader

# Jinja's own "length" and "mapping" are looked for in a package that Ansible makes when it is first asked for.
JINJA = ((filter_loader, ["bool", "length"]), (test_loader, ["defined", "mapping"]))
CLASSES = (
    (action_loader, ["allreduce.gpu.config_files", "ansible.legacy.normal"]),
    (connection_loader, ["ssh"]),
    (lookup_loader, ["ansible.builtin.file", "ansible.builtin.template", "ansible.builtin.vars",
                     "allreduce.gpu._os_variables", "allreduce.gpu._template", "allreduce.gpu.pynvml"]),
)  # fmt: skip

# New objects between two garbage collections, some 20 MB at most that wait for one; Python itself takes 700 or 2,000.
COLLECT_AFTER = 200_000


def prepare() -> None:
    """Load what most tasks use, and freeze what is in memory. For the import of an action, which precedes the forks.

    Ansible loads all of its filters and tests when a template asks for the first, and a plugin when a task asks for it, as a rule
    in a worker. Memory that a garbage collection in a worker visits is copied for that worker; objects that are frozen are not
    visited, and a task as a rule ends before so many objects are made that the first collection is due. That is 7 % of what a
    run without a change costs the controller: eight simulated nodes, three runs each in turn, two cores without other work.
    """
    for loader, names in JINJA:
        for name in names:
            with contextlib.suppress(KeyError):  # what Jinja has itself
                loader.get(name)
    for loader, names in CLASSES:
        for name in names:
            loader.get(name, class_only=True)
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)
