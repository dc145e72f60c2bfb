# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: which host makes the environments of a directory that several hosts share."""

from __future__ import annotations

DOCUMENTATION = r"""
name: _shared_places
short_description: Decide which host makes the Python environments of a shared directory
author: "The allreduce.gpu authors (@allreduce)"
description:
  - Each host has put a file into its directory of environments. Those that see the file of the same host share the directory with it,
    and leave to the first of them what all of them would do there.
positional: hostvars, places, marker, seen
options:
  _input:
    description: Names of the hosts, in order.
    type: list
    elements: str
    required: true
  hostvars:
    description: The variables of all hosts.
    type: dict
    required: true
  places:
    description: Name of the variable that holds what P(allreduce.gpu._environment_places#filter) gave on each host.
    type: str
    required: true
  marker:
    description: Name of the variable that holds the result of making the file, with its C(path) where it could be made.
    type: str
    required: true
  seen:
    description: Name of the variable that holds the result of looking for the files of all hosts, with their names as C(stdout_lines).
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Choose the node that makes the environments of a shared directory
  ansible.builtin.set_fact:
    sharing: "{{ ansible_play_hosts | allreduce.gpu._shared_places(hostvars, 'places', 'marker', 'seen') }}"
  run_once: true
"""

RETURN = r"""
_value:
  description:
    - For each host C(leader), the host that makes them, C(shared), whether there is another, C(places), what is left for it to do,
      C(others), the environments in which it differs from the leader, and C(unsupported), those that cannot be made so.
  type: dict
"""

from pathlib import PurePosixPath  # noqa: E402

from ..plugin_utils.environments.sharing import leaders, share  # noqa: E402


def shared_places(hosts, hostvars, places, marker, seen):
    """Collect the variables of the hosts that have places."""
    described = {host: hostvars[host][places] for host in hosts if places in hostvars[host]}
    made = {host: hostvars[host].get(marker, {}).get("path") for host in described}
    there = {host: hostvars[host].get(seen, {}).get("stdout_lines", []) for host in described}
    return share(described, leaders({host: PurePosixPath(path).name for host, path in made.items() if path}, there))


class FilterModule:
    """The filter of this file."""

    def filters(self):
        """Return {name: function}."""
        return {"_shared_places": shared_places}
