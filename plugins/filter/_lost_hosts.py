# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the hosts on which nothing can be done."""

from __future__ import annotations

DOCUMENTATION = """
name: _lost_hosts
short_description: List the nodes that are unreachable or cannot run modules
author: The allreduce.gpu authors (@allreduce)
description:
  - Says which hosts did not answer when role stack made the first contact, and on which the user cannot become root.
positional: hostvars, limit, needs_all
options:
  _input:
    description: Names of the hosts.
    type: list
    elements: str
    required: true
  hostvars:
    description: The variables of all hosts.
    type: dict
    required: true
  limit:
    description: The limit of this run.
    type: str
    default: ""
  needs_all:
    description: Whether each host is needed; else they are listed only where none answers.
    type: bool
    default: true
"""

EXAMPLES = """
- name: Show who cannot be worked on
  ansible.builtin.debug:
    msg: "{{ ansible_play_hosts_all | allreduce.gpu._lost_hosts(hostvars, ansible_limit | default('')) }}"
  run_once: true
"""

RETURN = """
_value:
  description: For each cause C(what) is wrong, C(why), and the C(fix); none where all hosts that are needed answer.
  type: list
  elements: dict
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ..plugin_utils.node.told import admitted
from ..plugin_utils.preflight.contact import READS, contact_problems
from ..plugin_utils.subjects.sentences import told


def lost_hosts(hosts, hostvars, limit="", needs_all=True):
    """Return the levels of what is wrong, by what role stack registered at the first contact."""
    known = admitted(hostvars, hosts, READS)
    tried = {host: one.get("__stack_reached") or {} for host, one in known.items()}
    root = {host: one.get("__stack_root") or {} for host, one in known.items()}
    return [told(problem)._asdict() for problem in contact_problems(tried, root, limit, needs_all)]


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"_lost_hosts": lost_hosts}
