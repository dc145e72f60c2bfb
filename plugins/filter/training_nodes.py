# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Adapter of plugin_utils.launch.request.select_nodes."""

from __future__ import annotations

DOCUMENTATION = r"""
name: training_nodes
short_description: Select the nodes of a training run
version_added: 0.1.0
author:
  - The allreduce.gpu authors (@allreduce)
description:
  - Returns the inventory names of the nodes that train; the first one is the rendezvous.
  - Fails with one sentence when there are no such nodes.
positional: wanted
options:
  _input:
    description: Inventory names of all nodes.
    type: list
    elements: str
    required: true
  wanted:
    description: A number (the first so many), a list of names, or either as text; empty for all.
    type: raw
"""

EXAMPLES = r"""
first_two: "{{ groups['gpu_nodes'] | allreduce.gpu.training_nodes(2) }}"
by_name: "{{ groups['gpu_nodes'] | allreduce.gpu.training_nodes('gpu-1,gpu-3') }}"
"""

RETURN = r"""
_value:
  description: Inventory names.
  type: list
  elements: str
"""

from ansible.errors import AnsibleFilterError
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.request import RequestError, select_nodes


def training_nodes(available: list[str], wanted: object = None) -> list[str]:
    """See DOCUMENTATION."""
    try:
        return select_nodes(available, wanted)
    except RequestError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    """Filter allreduce.gpu.training_nodes."""

    def filters(self) -> dict:
        return {"training_nodes": training_nodes}
