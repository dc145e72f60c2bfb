#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: slurm_facts
short_description: Gather what Slurm's configuration of a node follows from
version_added: 0.1.0
description:
  - Reads packages, NUMA nodes, cores and memory of the node, the device files of its MIG instances, and what the files of role
    P(allreduce.gpu.slurm#role) say of it where Slurm reads them.
  - Never changes the node.
author: "The allreduce.gpu authors (@allreduce)"
attributes:
  check_mode:
    description: Runs in check mode exactly as otherwise.
    support: full
  facts:
    description: Returns a fact.
    support: full
options:
  directory:
    description: Directory of C(slurm.conf).
    type: path
    default: /etc/slurm
  name:
    description: Name of the node in Slurm. Empty stands for its host name up to the first dot.
    type: str
    default: ''
  probe:
    description: Also ask the controller what it says of the node, if one is named by C(slurm.conf) or by the options of C(slurmd).
    type: bool
    default: false
  job_user:
    description:
      - With O(probe), user who runs one job on the node, with all its GPUs, where the node is idle. Empty runs none.
    type: str
    default: ''
  root:
    description:
      - Directory to read in place of the root directory, to examine a recorded machine.
      - With any other value than V(/) no program is run.
    type: path
    default: /
"""

EXAMPLES = r"""
- name: Measure what Slurm is to know of the node
  allreduce.gpu.slurm_facts:
"""

RETURN = r"""
ansible_facts:
  description: The fact.
  returned: success
  type: dict
  contains:
    gpu_slurm:
      description:
        - The node. C(version) is that of C(scontrol) or C(slurmd), null where neither is there.
        - C(places) are the processors of each package and NUMA node, in the order in which Slurm numbers cores.
        - C(capabilities) has the numbers of the device files of MIG instances.
        - C(configured) says whether there is a C(slurm.conf), C(included) which lines of it, of C(gres.conf) and of what they include
          include files of the role, C(named) which of its keys name the role's programs, and C(lines) what the role's files say of this
          node, null where a file is not there.
        - C(foreign) says whether C(slurm.conf) is not the role's, C(installed) which packages the role installed, C(programs) is a digest
          of the programs of Slurm's health checks, and C(confines) says whether the kernel gives cgroups what Slurm needs of them.
        - C(asked) is what the controller answers about the node, null without O(probe); its C(controller) is empty where none was found,
          its C(answers) null where there is no C(sinfo) or no configuration for it, and its C(job) is what a job of O(job_user) saw, null where none was run.
      returned: success
      type: dict
      sample:
        recorded: false
        name: gpu-1
        version: 24.11.5
        places:
          - {package: 0, node: 0, cores: 32, threads: 2, cpus: '0-31,64-95'}
          - {package: 1, node: 1, cores: 32, threads: 2, cpus: '32-63,96-127'}
        memory_kib: 1056270116
        capabilities: {}
        configured: true
        included: {/etc/slurm/allreduce_gres.conf: ['/etc/slurm/gres.conf:1'], /etc/slurm/allreduce_nodes.conf: ['/etc/slurm/slurm.conf:17']}
        named: {Prolog: '/etc/slurm/slurm.conf:21'}
        lines:
          allreduce_gres.conf: [AutoDetect=off Name=gpu Type=nvidia_a40 File=/dev/nvidia0 Cores=0-31 Links=-1]
          allreduce_nodes.conf: ['Boards=1 SocketsPerBoard=2 CoresPerSocket=32 ThreadsPerCore=2 RealMemory=978944 Gres=gpu:nvidia_a40:1']
        foreign: false
        installed: [munge, slurm-client, slurmd]
        programs: b5bb9d8014a0f9b1d61e21e796d78dccdf1352f23cd32812f4850b878ae4944c
        confines: true
        asked: {controller: 10.0.0.1, reachable: true, accounting: true, answers: true, state: idle, reason: none, job: null}
applied:
  description: Digest of the options of M(allreduce.gpu.tuning) that were last applied since the node booted, if they still hold.
  returned: success
  type: str
  sample: 5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host.ansible_module import program_output, program_runner
from ..module_utils.machine.files import FileTree
from ..module_utils.settings.slurm import RECORD, read_slurm
from ..module_utils.settings.slurm_probe import run_job
from ..module_utils.settings.tuning import holding


def main():
    """Read the options, measure, answer."""
    module = AnsibleModule(
        argument_spec={
            "directory": {"type": "path", "default": "/etc/slurm"},
            "name": {"type": "str", "default": ""},
            "probe": {"type": "bool", "default": False},
            "job_user": {"type": "str", "default": ""},
            "root": {"type": "path", "default": "/"},
        },
        supports_check_mode=True,
    )
    given, tree = module.params, FileTree(module.params["root"])
    try:
        run = program_output(module, given["root"])
        execute, user = program_runner(module), given["job_user"]
        submit = (lambda name, lines, partition: run_job(name, user, lines, execute, partition)) if user else None
        fact = read_slurm(tree, given["directory"], given["name"], run, given["probe"], submit)
    except ValueError as error:
        module.fail_json(msg="What Slurm is to know cannot be read: %s." % error)
    module.exit_json(changed=False, ansible_facts={"gpu_slurm": fact}, applied=holding(tree, RECORD))


if __name__ == "__main__":
    main()
