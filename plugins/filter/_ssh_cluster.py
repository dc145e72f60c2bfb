# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: what every node must know to reach the others by SSH."""

from __future__ import annotations

DOCUMENTATION = r"""
name: _ssh_cluster
short_description: Derive SSH files of a cluster from the facts of its nodes
version_added: 0.1.0
author: "The allreduce.gpu authors (@allreduce)"
description:
  - Gives the text of C(authorized_keys) and the lines for C(known_hosts) and C(/etc/hosts), the same for every node.
  - Nodes without facts keep what a former run recorded of them.
positional: hostvars, present
options:
  _input:
    description: Names of all nodes of the cluster.
    type: list
    elements: str
    required: true
  hostvars:
    description: The variables of all hosts.
    type: dict
    required: true
  present:
    description: Names of the nodes that take part in this run.
    type: list
    elements: str
    required: true
  extra:
    description: Further lines for C(authorized_keys).
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Derive the files
  ansible.builtin.set_fact:
    cluster: "{{ groups.gpu_nodes | allreduce.gpu._ssh_cluster(hostvars, ansible_play_hosts) }}"
  run_once: true
"""

RETURN = r"""
_value:
  description: nodes (what to record), unknown (names), authorized_keys, known_hosts, hosts (texts); or only problem, a sentence.
  type: dict
"""

import base64  # noqa: E402

from ..plugin_utils.cluster.ssh import describe_cluster, describe_node, key_kind  # noqa: E402
from ..plugin_utils.preflight.problem import ProblemError  # noqa: E402
from ..plugin_utils.preflight.text import describe_all  # noqa: E402


def ssh_cluster(names, hostvars, present, extra=()):
    """Collect what the role learned on each node; a user's mistake comes back as a sentence."""
    taking_part = [name for name in names if name in set(present)]
    kind = key_kind(hostvars[name] for name in names if name in hostvars)
    try:
        nodes = {name: describe_node(name, hostvars[name], _public_key(hostvars[name]), kind) for name in taking_part}
        records = [_slurped(hostvars[name].get("__cluster_ssh_record")) for name in taking_part]
        return describe_cluster(names, nodes, [record for record in records if record], extra)
    except ProblemError as error:
        return {"problem": describe_all(error.problems)}


def _public_key(variables):
    """Return the key that was made for the user in this run, else the one they had; None in check mode on a bare node."""
    made = variables["__cluster_ssh_account"].get("ssh_public_key")
    return _slurped(variables.get("__cluster_ssh_key")) if made is None else made


def _slurped(result):
    """Return the text of a file, None where there was none."""
    return base64.b64decode(result["content"]).decode("utf-8", "replace") if result and "content" in result else None


class FilterModule:
    """The filter of this file."""

    def filters(self):
        """Return {name: function}."""
        return {"_ssh_cluster": ssh_cluster}
