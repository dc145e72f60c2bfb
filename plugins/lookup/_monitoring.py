# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup: what role monitoring does on the node of the task."""

from __future__ import annotations

DOCUMENTATION = """
name: _monitoring
short_description: Derive a host's monitoring configuration from its variables and facts
author: The allreduce.gpu authors (@allreduce)
description:
  - Applies the user's variables to the defaults of role monitoring, and finds who watches and who is watched in the inventory.
options:
  _terms:
    description: V(answer), V(files), V(removed), V(watched) or V(recorded).
    type: list
    elements: str
    required: true
  others:
    description: What lookup C(_others) returned, for V(answer), V(files) and V(recorded). One task gathers it for all hosts.
    type: dict
    default: {}
"""

EXAMPLES = """
- name: Show what is refused
  ansible.builtin.debug:
    msg: "{{ lookup('allreduce.gpu._monitoring', 'answer', others=lookup('allreduce.gpu._others', 'monitoring')).problems }}"
"""

RETURN = """
_raw:
  description:
    - Of V(answer), C(problems) as sentences, and without any the units, packages and services.
    - Of V(files), the C(files) of module M(allreduce.gpu.config_files), and C(secrets), words in them that are not for logs.
    - Of V(removed), the services and files that go with the role.
    - Of V(watched), whether the role is about this host; of V(recorded), whether the role has been on any host of its groups.
  type: list
  elements: raw
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from collections import ChainMap

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ..plugin_utils.documents.parsing import DocumentError
from ..plugin_utils.subjects.monitoring.answer import answer, files, is_recorded, is_watched
from ..plugin_utils.subjects.monitoring.content import removed
from ..plugin_utils.subjects.monitoring.request import DEFAULTS
from ..plugin_utils.subjects.sentences import describe


class LookupModule(LookupBase):
    """Adapter for Ansible."""

    def run(self, terms, variables=None, **kwargs):
        self.set_options(var_options=variables, direct=kwargs)
        name, groups = variables["inventory_hostname"], variables.get("groups") or {}
        own_variables = variables["hostvars"][name]
        # What the role's own play or arguments set counts for its host, and for the others what the inventory has.
        given = {key: self._templar.template(variables[key]) for key in DEFAULTS if key in variables}
        # A default of the role is nothing that was asked for.
        own = {key: value for key, value in given.items() if value != DEFAULTS[key] or key in own_variables}
        # A copy would template every variable of the host, no matter whose it is.
        known = {**self.get_option("others"), name: ChainMap(own, own_variables)}
        facts = variables.get("ansible_facts") or {}
        answers = {
            "answer": lambda: _told(answer(name, known, groups, facts)),
            "files": lambda: files(name, known, groups, facts),
            "removed": lambda: removed(facts),
            "watched": lambda: is_watched(name, groups),
            "recorded": lambda: is_recorded(name, known, facts),
        }
        try:
            return [answers[term]() for term in terms]
        except DocumentError as error:
            raise AnsibleLookupError(str(error)) from error


def _told(found):
    return {**found, "problems": [describe(one) for one in found["problems"]]}
