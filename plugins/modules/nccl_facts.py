#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: nccl_facts
short_description: Gather NCCL's configuration on a node
version_added: 0.1.0
description:
  - Reads C(/etc/nccl.conf) and finds what else sets NCCL's variables for all users, for services or for one user.
  - Searches C(/etc/environment), C(/etc/environment.d), C(/etc/profile), C(/etc/profile.d), C(/etc/security), C(/etc/default),
    C(/etc/sysconfig), configuration, services and drop-ins of systemd below C(/etc/systemd), and C(~/.nccl.conf).
  - Returns the file, the line and the variable, and nothing else of the file. Never changes the node.
author: "The allreduce.gpu authors (@allreduce)"
attributes:
  check_mode:
    description: Runs in check mode exactly as otherwise.
    support: full
  facts:
    description: Returns a fact.
    support: full
options:
  user:
    description: User whose C(~/.nccl.conf) is read. None is read where the node does not have that user.
    type: str
    default: ''
  root:
    description: Directory to read in place of the root directory, to examine a recorded machine.
    type: path
    default: /
"""

EXAMPLES = r"""
- name: Find what sets NCCL's variables
  allreduce.gpu.nccl_facts:
    user: trainer
  become: true
"""

RETURN = r"""
ansible_facts:
  description: The fact.
  returned: success
  type: dict
  contains:
    gpu_nccl:
      description: NCCL's configuration. C(original) says whether there was a C(/etc/nccl.conf) before the role's own, C(zero) whether a
        variable that C(foreign) lists is set to 0.
      returned: success
      type: dict
      sample:
        recorded: true
        exists: true
        original: false
        variables: {NCCL_IB_HCA: '=mlx5_0,mlx5_1'}
        foreign: [{file: /etc/profile.d/nccl.sh, line: 2, name: NCCL_P2P_DISABLE, zero: false}]
        interfaces: [{name: eth0, subnet: 10.0.0.0/24}]
applied:
  description: Digest of the options of M(allreduce.gpu.tuning) that were last applied since the node booted, if they still hold.
  returned: success
  type: str
  sample: 5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.machine.files import FileTree
from ..module_utils.settings.nccl import read_nccl
from ..module_utils.settings.tuning import holding


def main():
    """Read the options, measure, answer."""
    module = AnsibleModule(
        argument_spec={"user": {"type": "str", "default": ""}, "root": {"type": "path", "default": "/"}},
        supports_check_mode=True,
    )
    tree = FileTree(module.params["root"])
    try:
        fact = read_nccl(tree, module.params["user"])
    except ValueError as error:
        module.fail_json(msg="NCCL's configuration cannot be read: %s." % error)
    module.exit_json(changed=False, ansible_facts={"gpu_nccl": fact}, applied=holding(tree, "nccl_conf"))


if __name__ == "__main__":
    main()
