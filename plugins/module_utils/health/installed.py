# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of role health's program that are on a node."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..machine.program_digest import read_digest

DIRECTORY = "/opt/allreduce/lib/health"
DECLARATION = "/etc/allreduce/health.json"


def read_installed(tree):
    """Return {``program``: digest, ``declaration``: text}, None for what is not there; None where neither is."""
    found = {"program": read_digest(tree, DIRECTORY), "declaration": tree.text(DECLARATION)}
    return found if any(value is not None for value in found.values()) else None
