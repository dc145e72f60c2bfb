# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the kind of SSH keys that all nodes of a cluster take."""

from __future__ import annotations

DOCUMENTATION = r"""
name: _ssh_key_kind
short_description: Choose the kind of SSH keys that all nodes of a cluster accept
author: "The allreduce.gpu authors (@allreduce)"
description:
  - Where one node accepts only what FIPS 140 approves, that is C(ecdsa) for all, else C(ed25519).
positional: hostvars
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
"""

EXAMPLES = r"""
- name: Show the kind of key
  ansible.builtin.debug:
    msg: "{{ groups.gpu_nodes | allreduce.gpu._ssh_key_kind(hostvars) }}"
"""

RETURN = r"""
_value:
  description: The kind, as ssh-keygen names it.
  type: str
"""

from ..plugin_utils.cluster.members import FIPS  # noqa: E402
from ..plugin_utils.cluster.ssh import key_kind  # noqa: E402
from ..plugin_utils.documents.door import told  # noqa: E402


def ssh_key_kind(names, hostvars):
    """Return the kind of key for the hosts of these names; of others nothing is known."""
    return key_kind(told(hostvars, [name for name in names if name in hostvars], [FIPS]).values.values())


class FilterModule:
    """The filter of this file."""

    def filters(self):
        """Return {name: function}."""
        return {"_ssh_key_kind": ssh_key_kind}
