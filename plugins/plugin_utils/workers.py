# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plugins that Ansible's workers inherit. Each task of each node is a fork, which would otherwise do the same again."""

from __future__ import annotations

import contextlib

from ansible.plugins.loader import action_loader, connection_loader, filter_loader, lookup_loader, test_loader

# Jinja's own "length" and "mapping" are looked for in a package that Ansible makes when it is first asked for.
JINJA = ((filter_loader, ["bool", "length"]), (test_loader, ["defined", "mapping"]))
CLASSES = (
    (action_loader, ["allreduce.gpu.config_files", "ansible.legacy.normal"]),
    (connection_loader, ["ssh"]),
    (lookup_loader, ["ansible.builtin.file", "ansible.builtin.template", "ansible.builtin.vars",
                     "allreduce.gpu._os_variables", "allreduce.gpu._template", "allreduce.gpu.pynvml"]),
)  # fmt: skip


def prepare() -> None:
    """Load what most tasks use. For the import of an action, which precedes the forks.

    Ansible loads all of its filters and tests when a template asks for the first, and a plugin when a task asks for it, as a rule
    in a worker.
    """
    for loader, names in JINJA:
        for name in names:
            with contextlib.suppress(KeyError):  # what Jinja has itself
                loader.get(name)
    for loader, names in CLASSES:
        for name in names:
            loader.get(name, class_only=True)
