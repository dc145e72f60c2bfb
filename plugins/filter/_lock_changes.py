# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: what the lock lacks of what an inventory asks for."""

from __future__ import annotations

DOCUMENTATION = """
name: _lock_changes
short_description: List the differences between a lock and the requests of nodes
author: The allreduce.gpu authors (@allreduce)
description:
  - Looks for what every host asks for in the lock, without contacting it. A host without facts and without C(gpu_stack_host) is
    taken for one of the kinds that the lock has.
positional: hostvars, lock, renew
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
  lock:
    description: Path of the lock file.
    type: path
    required: true
  renew:
    description: Whether what newer tables would choose for hosts that are described is a difference, too.
    type: bool
    default: false
"""

EXAMPLES = """
- name: Show what the lock lacks
  ansible.builtin.debug:
    msg: "{{ ansible_play_hosts_all | allreduce.gpu._lock_changes(hostvars, stack_lock) }}"
  run_once: true
"""

RETURN = """
_value:
  description: Lines of text; none where the lock has what every host asks for.
  type: list
  elements: str
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ansible.errors import AnsibleFilterError
from ansible.release import __version__

from ..plugin_utils.node.told import whole
from ..plugin_utils.planning.lock_check import check_lock, lines
from ..plugin_utils.planning.plan import READS
from ..plugin_utils.problems.problem import ProblemError
from ..plugin_utils.subjects.sentences import describe_all


def lock_changes(hosts, hostvars, lock, renew=False):
    """Return the changes of a lock, as lines of a changelog."""
    try:
        return lines(check_lock(whole(hostvars, hosts, READS), __version__, lock, renew))
    except ProblemError as error:
        raise AnsibleFilterError(describe_all(error.problems)) from None


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"_lock_changes": lock_changes}
