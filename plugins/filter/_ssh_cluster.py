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
    nodes (what to record), unknown (names), authorized_keys, known_hosts, hosts (texts), rotating (whether a node's keys are
    to be replaced); or only problem, a sentence.
  type: dict
"""

from ..plugin_utils.cluster.host_keys import Record, changed_keys, newest_first, pinned_keys  # noqa: E402
from ..plugin_utils.cluster.rotation import rotation_problems  # noqa: E402
from ..plugin_utils.cluster.ssh import describe_cluster, describe_node, host_keys, key_kind  # noqa: E402
from ..plugin_utils.problems.problem import ProblemError, refuse  # noqa: E402
from ..plugin_utils.subjects.sentences import describe_all  # noqa: E402


def ssh_cluster(names, hostvars, present, extra=(), accepted=None, rotation=""):
    """Collect what the role learned on each node; a user's mistake comes back as a sentence."""
    taking_part = [name for name in names if name in set(present)]
    kind = key_kind(hostvars[name] for name in names if name in hostvars)
    kept = {name: hostvars[name]["__cluster_ssh_keys"] for name in taking_part}
    records = [Record(name, **one["record"]) for name, one in kept.items() if one.get("record")]
    try:
        refuse(rotation_problems(str(rotation), [name for name in names if name not in kept], kept))
        pins = pinned_keys(taking_part, records)
        refuse(changed_keys({name: _keys(hostvars[name], kind) for name in taking_part}, pins, accepted or {}))
        nodes = {
            name: describe_node(
                name, hostvars[name], one.get("public_key"), kind, one.get("next_public_key"), pins.get(name)
            )
            for name, one in kept.items()
        }
        found = describe_cluster(names, nodes, [record.text for record in newest_first(records)], extra)
        return {**found, "rotating": any(not one.get("rotated", True) for one in kept.values())}
    except ProblemError as error:
        return {"problem": describe_all(error.problems)}


def _keys(variables, kind):
    return {"all": host_keys(variables), "usable": host_keys(variables, kind)}


class FilterModule:
    """The filter of this file."""

    def filters(self):
        """Return {name: function}."""
        return {"_ssh_cluster": ssh_cluster}
