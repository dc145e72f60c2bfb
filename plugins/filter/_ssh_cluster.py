# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: what every node must know to reach the others by SSH."""

from __future__ import annotations

DOCUMENTATION = r"""
name: _ssh_cluster
short_description: Derive SSH files of a cluster from the facts of its nodes
author: "The allreduce.gpu authors (@allreduce)"
description:
  - Gives the text of C(authorized_keys) and the lines for C(known_hosts) and C(/etc/hosts), the same for every node.
  - Nodes without facts keep what an earlier run recorded of them; a host key that is recorded holds until another is accepted.
  - A node whose facts or keys do not fit is left out, and nothing else depends on what it says.
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
  accepted:
    description: Fingerprints of host keys that take the place of those by which nodes are known.
    type: dict
    default: {}
  rotation:
    description: Name of the rotation that is asked for.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Derive the files
  ansible.builtin.set_fact:
    cluster: "{{ groups.gpu_nodes | allreduce.gpu._ssh_cluster(hostvars, ansible_play_hosts) }}"
  run_once: true
"""

RETURN = r"""
_value:
  description: >-
    nodes (what to record), unknown (names), left_out (a sentence for each node that takes part and does not fit), notes (sentences),
    authorized_keys, known_hosts, hosts (texts), rotating (whether a node's keys are to be replaced); or only problem, a sentence.
  type: dict
"""

from ..plugin_utils.cluster.members import collect, nodes_of  # noqa: E402
from ..plugin_utils.problems.problem import ProblemError  # noqa: E402
from ..plugin_utils.subjects.sentences import describe, describe_all  # noqa: E402


def ssh_cluster(names, hostvars, present, extra=(), accepted=None, rotation=""):
    """Collect what the role learned on each node; a user's mistake comes back as a sentence."""
    try:
        found = collect(names, hostvars, present, extra, accepted, str(rotation))
    except ProblemError as error:
        return {"problem": describe_all(error.problems)}
    left_out = {}
    for problem in found["left_out"]:
        for node in nodes_of(problem):
            left_out.setdefault(node, []).append(problem)
    sentences = {node: describe_all(problems) for node, problems in left_out.items()}
    return {**found, "left_out": sentences, "notes": [describe(one) for one in found["notes"]]}


class FilterModule:
    """The filter of this file."""

    def filters(self):
        """Return {name: function}."""
        return {"_ssh_cluster": ssh_cluster}
