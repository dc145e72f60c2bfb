#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name, which does the work on the controller."""

DOCUMENTATION = r"""
module: packages
short_description: Install packages in their planned versions and hold them
version_added: 0.1.0
author:
  - The allreduce.gpu authors (@allreduce)
description:
  - Releases the hold of an earlier plan, installs what is missing in one transaction, removes what is unwanted, holds the
    result with M(allreduce.gpu.package_hold), and measures the node again with M(allreduce.gpu.node_state).
  - The hold is set even after a failure, so that what is installed stays together. Unwanted packages are removed after the installation, so
    that a failed one leaves the node as it was.
  - >-
      Changes are found by comparing the plan with the fact C(gpu_node_state). Where there are none, only the module that keeps the hold runs on the
      node; without a hold, nothing does.
  - A failure is reported in one sentence that says what to change.
options:
  name:
    description:
      - Name of the packages, and of the files of their hold.
      - Without O(plan), one of V(driver), V(fabric-manager), V(cuda-toolkit), V(cudnn), V(nccl), V(dcgm) and
        V(container-toolkit), whose packages are those of the fact C(gpu_stack). Where the stack has none, the task is skipped.
    type: str
    required: true
  plan:
    description: Packages of your own. Patterns are shell patterns.
    type: dict
    suboptions:
      packages:
        description:
          - Names, or mappings with C(name) and C(version). A version may have wildcards; without one, any will do.
        type: list
        elements: raw
      first:
        description:
          - Packages as in O(plan.packages) to install in a transaction of their own before the others, because they
            decide on the others' versions or bring their repository.
        type: list
        elements: raw
      optional:
        description:
          - Names of packages to install where a repository has them. No repository is queried in check mode.
        type: list
        elements: str
      kernel_headers:
        description:
          - Install the headers of the kernels that must have the driver's module, too. These are the running kernel and the one
            that the boot loader starts next; metapackages of headers follow those of the kernels that are installed.
          - Where the driver's module is compiled on the node and no repository has the headers of the next boot's kernel, the
            task fails with C(cause=not_offered) before it installs anything.
        type: bool
      unwanted:
        description: Patterns of packages to remove after the installation.
        type: list
        elements: str
      unpinning:
        description: Patterns; of what is unwanted, packages to remove before the installation.
        type: list
        elements: str
      held:
        description: Patterns of packages to hold at the versions that are installed then. Without it, nothing is held.
        type: list
        elements: str
      excluded:
        description: Patterns of packages that another hold keeps although O(plan.held) names them.
        type: list
        elements: str
      version:
        description:
          - Version, with wildcards, that packages of O(plan.held) take where the others depend on them.
          - For apt, which otherwise installs the newest; dnf finds it by itself.
        type: str
      services:
        description: Services that are not restarted when a library below them is upgraded, with wildcards.
        type: list
        elements: str
      module_stream:
        description: Stream of a dnf module to enable before, as C(module:stream).
        type: str
      hold_kernel:
        description: Hold the kernel, too.
        type: bool
  state:
    description:
      - V(absent) removes the packages, everything that their hold names, and the hold.
      - V(repaired) completes an interrupted transaction of the package manager, and does nothing else.
    type: str
    choices: [present, absent, repaired]
    default: present
  hold_kernel:
    description: For a component of the stack, hold the kernel, too. Kernels of precompiled modules are held in any case.
    type: bool
    default: false
  install_recommends:
    description:
      - Install the recommended packages too.
      - The default is V(false) for a component of the stack, and what the node is configured to do for O(plan).
    type: bool
  lock_timeout:
    description: Seconds to wait for another package manager. The default is the variable C(gpu_package_lock_timeout), or 600.
    type: int
attributes:
  action:
    description: Runs on the controller, and modules on the node.
    support: full
  async:
    description: Runs in the background.
    support: none
  check_mode:
    description:
      - Predicts changes without making them. Package lists are not refreshed, so a version that no repository has is only
        found when it is installed.
    support: full
  diff_mode:
    description: Shows the packages that move, and what changes in the files of the hold.
    support: full
  facts:
    description: Returns the fact C(gpu_node_state) when it measured the node again.
    support: full
"""

EXAMPLES = r"""
- name: Install and hold the planned cuDNN packages
  allreduce.gpu.packages:
    name: cudnn

- name: Install GPUDirect Storage and hold it
  allreduce.gpu.packages:
    name: gds
    plan:
      packages: [{name: nvidia-gds-12-8, version: "12.8.1-*"}]
      held: [nvidia-gds*, nvidia-fs*]
"""

RETURN = r"""
installed:
  description: Packages that were installed, upgraded or downgraded, with their versions; in check mode with the planned ones.
  returned: when the plan names packages
  type: dict
  sample: {libcudnn9-cuda-12: 9.10.2.21-1}
removed:
  description: Packages that were removed.
  returned: when the plan names packages
  type: list
  elements: str
unavailable:
  description: Packages that no repository has, of O(plan.optional) and of the optional headers.
  returned: when the plan names packages
  type: list
  elements: str
ansible_facts:
  description: The state of the node after a change.
  returned: when the node was measured again
  type: dict
  contains:
    gpu_node_state:
      description: As M(allreduce.gpu.node_state) returns it.
      type: dict
cause:
  description: Code of what went wrong, V(unknown) where it is not known.
  returned: failure
  type: str
  sample: lock_held
remedy:
  description: What to do; empty where the cause is not known.
  returned: failure
  type: str
output:
  description: The last lines that the step that failed printed.
  returned: failure
  type: str
"""
