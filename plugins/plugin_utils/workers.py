# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Ansible's workers inherit. Each task of each node is a fork, which would otherwise do the same again."""

from __future__ import annotations

import gc

from ansible.plugins.loader import filter_loader, test_loader


def prepare() -> None:
    """Load Ansible's own filters and tests, and freeze what is in memory. For the import of an action, which precedes the forks.

    Ansible loads all of them when a template asks for the first, as a rule in a worker. Memory that a garbage collection in a
    worker visits is copied for that worker; objects that are frozen are not visited.
    """
    for loader, name in ((filter_loader, "bool"), (test_loader, "defined")):
        loader.get(name)
    gc.freeze()
