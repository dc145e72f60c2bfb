# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Adapter of plugin_utils.launch.request.plan_request."""

from __future__ import annotations

DOCUMENTATION = r"""
name: _training_request
short_description: Find the nodes and the script of a training run
author:
  - The allreduce.gpu authors (@allreduce)
description:
  - Selects the nodes that train, finds the script on the controller, and says in one sentence what is wrong with either.
options:
  _input:
    description: Inventory names of all nodes.
    type: list
    elements: str
    required: true
  nodes:
    description: A number (the first of them), a list of names, or either as text; empty for all.
    type: raw
  script:
    description: Path of the script.
    type: path
    required: true
  playing:
    description: Names of the nodes that take part in the play; all of them if not given.
    type: list
    elements: str
  files:
    description: Paths of files and directories to put next to the script, also as one text with commas.
    type: list
    elements: path
    default: []
  directories:
    description: Where to look for a relative path, the first directory first.
    type: list
    elements: path
    required: true
  forks:
    description: How many nodes Ansible serves at the same time.
    type: int
    required: true
"""

EXAMPLES = r"""
__plan: "{{ groups['gpu_nodes'] | allreduce.gpu._training_request(
  nodes=2, script='train.py', directories=[playbook_dir], forks=ansible_forks) }}"
"""

RETURN = r"""
_value:
  description:
    - C(nodes), the inventory names with the rendezvous first; C(script), an absolute path; C(files), absolute
      paths; C(refusal), V(null) or one sentence, with which the others are empty.
  type: dict
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from collections.abc import Sequence
from typing import Any

from ..plugin_utils.launch.request import plan_request
from ..plugin_utils.problems.problem import ProblemError
from ..plugin_utils.subjects.sentences import describe_all


def training_request(
    available: Sequence[str],
    *,
    script: str,
    directories: Sequence[str],
    forks: int,
    nodes: object = None,
    playing: Sequence[str] | None = None,
    files: Sequence[str] | str = (),
) -> dict[str, Any]:
    """Return the request with refusal null, or an empty one with the sentence that says why."""
    try:
        found = plan_request(
            available, nodes=nodes, script=script, directories=directories, forks=forks, playing=playing, files=files
        )
        return {**found, "refusal": None}
    except ProblemError as error:
        return {"nodes": [], "script": "", "files": [], "refusal": describe_all(error.problems)}


class FilterModule:
    """Filter allreduce.gpu._training_request."""

    def filters(self) -> dict:
        return {"_training_request": training_request}
