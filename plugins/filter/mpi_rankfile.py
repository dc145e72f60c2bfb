# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: rankfile for Open MPI."""

DOCUMENTATION = """
name: mpi_rankfile
short_description: Write a rankfile for Open MPI
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Binds each rank to its share of the CPUs nearest to its GPU.
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
      | allreduce.gpu.mpi_rankfile }}"
"""

RETURN = """
_value:
  description: Text of the file.
  type: str
"""

from ..plugin_utils.topology.mpi import mpi_rankfile  # noqa: E402


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"mpi_rankfile": mpi_rankfile}
