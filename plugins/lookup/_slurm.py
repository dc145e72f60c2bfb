# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup: what role slurm installs, writes and removes on a host."""

from __future__ import annotations

DOCUMENTATION = """
name: _slurm
short_description: Derive what role slurm does on a host of a cluster that it installs
author: The allreduce.gpu authors (@allreduce)
description:
  - Applies the user's variables to the defaults of role slurm, and makes Slurm's configuration from what was measured of the nodes.
options:
  _terms:
    description: V(cluster), V(answer), V(programs) or V(removed).
    type: list
    elements: str
    required: true
  others:
    description: What lookup C(_others) returned. One task gathers it for all hosts.
    type: dict
    default: {}
  cluster:
    description: What V(cluster) returned, for V(answer) and V(programs).
    type: dict
    default: {}
"""

EXAMPLES = """
- name: Show what is refused
  ansible.builtin.debug:
    msg: "{{ lookup('allreduce.gpu._slurm', 'cluster', others=lookup('allreduce.gpu._others', 'slurm')).problems }}"
"""

RETURN = """
_raw:
  description:
    - Of V(cluster), what every node has to know of it, the same for all.
    - Of V(answer), C(problems) as sentences, and without any the files, packages and services of the host.
    - Of V(programs), C(files) of those that Slurm starts for the node's health, and whether the host has such that it C(goes) without.
    - Of V(removed), the services, packages and files that go with the role.
  type: list
  elements: raw
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ..plugin_utils.documents.parsing import DocumentError
from ..plugin_utils.problems.problem import Problem
from ..plugin_utils.subjects.sentences import describe
from ..plugin_utils.subjects.slurm import installed
from ..plugin_utils.subjects.slurm.answer import SUBJECT
from ..plugin_utils.subjects.subject import Node


class LookupModule(LookupBase):
    """Adapter for Ansible."""

    def run(self, terms, variables=None, **kwargs):
        self.set_options(var_options=variables, direct=kwargs)
        names = [name for name in SUBJECT.variables if name in variables]
        given = {name: self._templar.template(variables[name]) for name in names}
        facts, groups = variables.get("ansible_facts") or {}, variables.get("groups") or {}
        node = Node(variables["inventory_hostname"], given, facts, self.get_option("others"), groups)
        answers = {
            "cluster": lambda: installed.shared(node),
            "answer": lambda: installed.answer(node, self.get_option("cluster")),
            "programs": lambda: installed.programs(node, self.get_option("cluster")),
            "removed": lambda: installed.removed(node),
        }
        try:
            return [_told(answers[term]()) for term in terms]
        except DocumentError as error:
            raise AnsibleLookupError(str(error)) from error


def _told(found):
    """Return the answer with its problems as sentences; those of the cluster have been made ones already."""
    return {
        **found,
        "problems": [describe(one) if isinstance(one, Problem) else one for one in found.get("problems", ())],
    }
