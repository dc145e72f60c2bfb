# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: environment variables that NCCL needs on a node."""

DOCUMENTATION = """
name: nccl_environment
short_description: Choose the environment variables that NCCL needs on a node
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - A variable is set only where the measurement shows that NCCL's own choice would be wrong or ambiguous.
  - The result holds for the measured node only, never for all nodes of a job.
extends_documentation_fragment: [allreduce.gpu.gpu_node]
positional: nccl_version
options:
  nccl_version:
    description:
      - The version of NCCL that the job runs, such as V(2.20.5).
      - C(NCCL_IB_GID_INDEX) is set for versions before 2.21 only; newer NCCL selects the GID itself.
    type: str
"""

EXAMPLES = """
- name: Show the result
  ansible.builtin.debug:
    msg: "{{ ansible_facts.gpu_node
      | allreduce.gpu.nccl_environment }}"
"""

RETURN = """
_value:
  description: C(variables), and C(reasons) why each is set or not.
  type: dict
"""

from ..plugin_utils.topology.nics import nccl_environment  # noqa: E402


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"nccl_environment": nccl_environment}
