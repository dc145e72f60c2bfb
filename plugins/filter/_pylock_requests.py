# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: what has to be solved for the pylock.toml of every environment."""

from __future__ import annotations

DOCUMENTATION = """
name: _pylock_requests
short_description: List the requirements that uv solves for each environment's pylock.toml
author: The allreduce.gpu authors (@allreduce)
description:
  - Says for each kind of host and each of its environments which project file C(uv pip compile) is given, and with what.
  - Environments that conda makes are left out, as a pylock.toml has Python packages only.
positional: hostvars
options:
  _input:
    description: The plan, as M(allreduce.gpu.cluster_plan) returns it.
    type: dict
    required: true
  hostvars:
    description: The variables of all hosts, whose C(python_env_packages), indexes and links are those of role python_env.
    type: dict
    required: true
"""

EXAMPLES = """
- name: Show which files there would be
  ansible.builtin.debug:
    msg: "{{ plan | allreduce.gpu._pylock_requests(hostvars) | map(attribute='file') }}"
"""

RETURN = """
_value:
  description: For each environment C(host), C(name), C(file), C(project), C(arguments) and C(environment).
  type: list
  elements: dict
"""

from ..plugin_utils.environments.project import READS, pylock_requests  # noqa: E402
from ..plugin_utils.node.told import admitted  # noqa: E402


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {
            "_pylock_requests": lambda plan, hostvars: pylock_requests(
                plan, admitted(hostvars, [kind["hosts"][0] for kind in plan["stacks"]], READS)
            )
        }
