# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: topology file for NCCL."""

DOCUMENTATION = """
name: nccl_topology_xml
short_description: Write a topology file for NCCL
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - The text of a file for C(NCCL_TOPO_FILE), for machines on which NCCL cannot see its own PCI tree or NVLinks.
  - NCCL finds them itself on bare metal; set the variable only where it does not, such as in virtual machines.
  - The file holds for the measured node only.
extends_documentation_fragment: [allreduce.gpu.gpu_node]
"""

EXAMPLES = """
- name: Write the file
  ansible.builtin.copy:
    content: "{{ ansible_facts.gpu_node | allreduce.gpu.nccl_topology_xml }}"
    dest: /etc/allreduce/nccl-topology.xml
    mode: "0644"
"""

RETURN = """
_value:
  description: Text of the file.
  type: str
"""

from ..plugin_utils.topology.nccl_xml import nccl_topology_xml  # noqa: E402


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"nccl_topology_xml": nccl_topology_xml}
