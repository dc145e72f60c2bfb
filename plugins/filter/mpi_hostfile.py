# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: hostfile for Open MPI."""

DOCUMENTATION = """
name: mpi_hostfile
short_description: Write a hostfile for Open MPI
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - One line for each node with as many slots as it has GPUs.
options:
  _input:
    description: For each node, by name, what M(allreduce.gpu.gpu_facts) measured there.
    type: dict
    required: true
"""

EXAMPLES = """
- name: Show the result
  ansible.builtin.debug:
    msg: "{{ dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, ['ansible_facts', 'gpu_node'])))
      | allreduce.gpu.mpi_hostfile }}"
"""

RETURN = """
_value:
  description: Text of the file.
  type: str
"""

from ..plugin_utils.topology.mpi import mpi_hostfile  # noqa: E402


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"mpi_hostfile": mpi_hostfile}
