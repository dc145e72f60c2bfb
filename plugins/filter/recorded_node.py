# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: a node from the output of another machine's nvidia-smi."""

DOCUMENTATION = """
name: recorded_node
short_description: Rebuild a node's facts from the output of C(nvidia-smi topo -m)
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Reads the matrix of a machine that cannot be measured, so that the other filters work on it.
  - Understands the output of all drivers so far, even pasted and cut off at its end. What is missing is null.
  - A matrix with cells that are empty or run together is refused with the number of the line and what is expected there.
positional: ports
options:
  _input:
    description: The text.
    type: str
    required: true
  ports:
    description:
      - For each adapter by name what the text does not tell, V(state), V(link_layer), V(rate_gbps) and V(rocev2_gid_index).
      - Without it no filter says which adapters to use.
    type: dict
"""

EXAMPLES = """
- name: Show the GPUs that should train together on another user's machine
  ansible.builtin.debug:
    msg: "{{ lookup('ansible.builtin.file', 'topo.txt') | allreduce.gpu.recorded_node | allreduce.gpu.nvlink_islands }}"
"""

RETURN = """
_value:
  description: As M(allreduce.gpu.gpu_facts) returns it in C(ansible_facts.gpu_node).
  type: dict
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ansible.errors import AnsibleFilterError

from ..plugin_utils.topology import recorded


def recorded_node(text, ports=None):
    """Return the node; raise AnsibleFilterError, with the line, for a matrix that is torn."""
    if not isinstance(text, str):
        raise AnsibleFilterError(f'recorded_node takes the text that "nvidia-smi topo -m" printed, not {text!r:.40}.')
    try:
        return recorded.recorded_node(text, ports)
    except ValueError as error:
        raise AnsibleFilterError(f"recorded_node: {error}") from None


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"recorded_node": recorded_node}
