# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the document of a verification."""

DOCUMENTATION = """
name: _verification
short_description: Collect the checks of a cluster into one document
author: The allreduce.gpu authors (@allreduce)
description:
  - Builds what role verify writes as C(verify.json), the facts of every node, its checks, and those of the cluster.
positional: present, hostvars, collectives, finished
options:
  _input:
    description: Names of all hosts that were to be verified.
    type: list
    elements: str
    required: true
  present:
    description: Names of those that still answer. Of the others, one failed check says so.
    type: list
    elements: str
    required: true
  hostvars:
    description: The variables of all hosts.
    type: dict
    required: true
  collectives:
    description: What M(allreduce.gpu.torchrun) returned for the check of the collectives.
    type: dict
    required: true
  finished:
    description: When the verification ended, ISO 8601 in UTC.
    type: str
    required: true
"""

EXAMPLES = """
- name: Collect the checks
  ansible.builtin.set_fact:
    cluster_verification: "{{ ansible_play_hosts_all
      | allreduce.gpu._verification(ansible_play_hosts, hostvars, collectives, '2026-11-21T15:30:00Z') }}"
"""

RETURN = """
_value:
  description: The document, with C(format), C(finished), C(inventory), C(collection), C(nodes), C(network) and C(cluster_checks).
  type: dict
"""

from functools import partial  # noqa: E402

from ..plugin_utils.checks.document import verification  # noqa: E402
from ..plugin_utils.documents.collection import version  # noqa: E402


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"_verification": partial(verification, collection=version())}
