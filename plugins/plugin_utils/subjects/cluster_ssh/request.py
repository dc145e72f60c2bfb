# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The subject of role cluster_ssh: what a user's account on a node has, as module node_probe read it back."""

from __future__ import annotations

from ...documents.comparison import Comparison
from ..subject import Node, Subject
from .compare import compare_ssh

DEFAULTS = {"cluster_ssh_user": "trainer", "cluster_ssh_authorized_keys": []}


def comparisons(node: Node) -> list[Comparison]:
    """Return the comparisons of the account; none where it was not looked at."""
    found, variables = node.variables.get("__verify_probe") or {}, node.variables
    user = str(variables.get("verify_user") or variables.get("cluster_ssh_user") or DEFAULTS["cluster_ssh_user"])
    account = (found.get("node_probe") or {}).get("ssh_account")
    return compare_ssh(account, user, variables.get("cluster_ssh_authorized_keys") or [])


SUBJECT = Subject(name="cluster_ssh", defaults=DEFAULTS, compare=comparisons)
