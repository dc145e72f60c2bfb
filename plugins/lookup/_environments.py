# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup: the plan of the nodes' Python environments."""

from __future__ import annotations

DOCUMENTATION = """
name: _environments
short_description: Answer one question about the plan of the nodes' Python environments
author: The allreduce.gpu authors (@allreduce)
description:
  - Decides by the facts C(gpu_stack) and C(gpu_node_state) and by what roles python_env, frameworks and horovod have found so far.
  - A question about all nodes reads the variables of every node of the play; ask it in a task with C(run_once).
options:
  _terms:
    description:
      - Of role python_env, V(missing), V(unchecked), V(conda), V(conda_refused), V(conda_locks) and V(conda_made); of role frameworks,
        V(settled), V(lock_files), V(environments), V(refused), V(locks), V(new_locks), V(project), V(places), V(changes), V(markers),
        V(shares), V(archives), V(wheel_files) and V(offered); of role horovod, V(builds), V(build_plan), V(wheels) and V(wheel_refused).
      - Of these V(settled), V(conda_locks), V(locks), V(changes), V(markers), V(shares), V(archives), V(build_plan) and
        V(wheels) are about all nodes.
    type: list
    elements: str
    required: true
"""

EXAMPLES = """
- name: Choose the lock of every request
  ansible.builtin.set_fact:
    __frameworks_plan: "{{ lookup('allreduce.gpu._environments', 'locks') }}"
  run_once: true
"""

RETURN = """
_raw:
  description: The answers.
  type: list
  elements: raw
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from ..plugin_utils.environments.plan import QUESTIONS
from ..plugin_utils.node.told import admitted
from ..plugin_utils.problems.problem import ProblemError
from ..plugin_utils.problems.text import describe_all


class LookupModule(LookupBase):
    """Adapter for Ansible."""

    def run(self, terms, variables=None, **kwargs):
        return [self._answer(QUESTIONS[term], variables) for term in terms]

    def _answer(self, question, variables):
        own = {name: self._templar.template(variables[name]) for name in question.reads if name in variables}
        hosts = variables["ansible_play_hosts"] if question.shared else ()
        nodes = admitted(variables["hostvars"], hosts, question.shared)
        try:
            return question.answer(own, nodes)
        except ProblemError as error:
            raise AnsibleError(describe_all(error.problems)) from error
