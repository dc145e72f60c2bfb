#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name, which does the work on the controller."""

DOCUMENTATION = r"""
---
module: resolve_stack
short_description: One consistent set of GPU software versions, or the reason why there is none
version_added: 0.1.0
author: "The allreduce.gpu authors (@allreduce)"
description:
  - Chooses driver, kernel module flavour, CUDA, cuDNN, NCCL, Python and frameworks that work together on a host,
    from the tables of this collection.
  - Runs on the controller only and opens no connection. Nothing is changed anywhere.
  - When no set fits, it names the smallest set of wishes and facts that clash, why, and the nearest request that works.
options:
  os:
    description:
      - Operating system as name and version, for example V(ubuntu 22.04) or V(rocky 8.10), or a dictionary with
        C(id) and C(version).
      - Defaults to the host's facts.
    type: raw
  arch:
    description: Architecture, V(x86_64) or V(aarch64). Defaults to the host's facts, else V(x86_64).
    type: str
  gpus:
    description:
      - One entry per GPU, a name as NVML gives it, a short name, a PCI device id, a compute capability, or an entry of
        C(ansible_facts.gpu_node.gpus).
      - Defaults to C(ansible_facts.gpu_node.gpus). An empty list is a host without GPU.
    type: list
    elements: raw
  gpu_models:
    description:
      - Model for each PCI device id that the tables do not know, or that they take for another GPU, such as
        C(2909) and C(B200). It goes before the tables for GPUs that were measured.
    type: dict
    default: {}
  take_charge:
    description:
      - Whether to choose the driver although somebody else is in charge of it, as C(ansible_facts.gpu_node_state.driver_owner)
        says. Otherwise the one that is installed is taken as it is.
    type: bool
    default: false
  python:
    description: The interpreter the environments must have, as a version, prefix or range.
    type: str
  interpreter:
    description:
      - Where the interpreter of the environments comes from, V(auto), V(distribution), V(standalone) (a build that uv
        installs) or the absolute path of one that is there; variable C(python_env_python) of a host.
      - V(auto) takes the distribution's where it has one that the frameworks accept, its system Python first, else a
        standalone build.
    type: str
  profile:
    description:
      - Name of a request that comes with the collection, such as V(pytorch-stable); O(request) is laid over it.
      - C(data/stack/profiles.yml) lists them.
    type: str
  request:
    description:
      - What the user wants, any subset of C(driver), C(driver_source) (V(auto), V(nvidia), V(distribution),
        V(runfile), V(vendor)), C(kernel_modules) (V(auto), V(open), V(proprietary)), C(cuda), C(cudnn), C(nccl), C(pytorch),
        C(pytorch_index), C(tensorflow), C(horovod), C(cupy), C(python), C(environments).
      - Each version is a full version, a prefix such as V(12), a range such as V(">=12,<13"), or V(latest).
      - V(pypi) as C(pytorch_index) is the build that the general package index itself has, for sites with a mirror of that
        index only; its CUDA depends on the release.
      - What is absent the resolver chooses. Without any framework PyTorch is planned. Say C(pytorch=none) to leave it out.
    type: dict
    default: {}
  environments:
    description:
      - V(one) puts all frameworks into one environment, V(split) gives each its own.
      - Defaults to C(request.environments), else V(one).
    type: str
    choices: [one, split]
  packages:
    description:
      - Requirements of packages that every environment gets beside the frameworks, such as V(catboost) or V(mpi4py>=4.1). The resolver
        does not look at them.
    type: list
    elements: str
    default: []
  ansible_core:
    description: The ansible-core version that will run on the host. Defaults to the running one.
    type: str
  suites:
    description:
      - The suites of the distribution's archive the host has enabled; they decide which driver version it offers.
      - Defaults to C(ansible_facts.gpu_node_state.apt_mirrors), else all suites of the release.
    type: list
    elements: str
  nvswitches:
    description:
      - How many NVSwitches the host has on PCI; more than none makes the fabric manager part of the stack.
      - Defaults to C(ansible_facts.gpu_node.nvswitches), else full boards of GPUs that have them are taken to have them.
        NVSwitches of NVLink 5 are not on PCI, so there the GPUs alone decide.
    type: int
  kernels:
    description:
      - Releases of the kernels that the driver's module is built for; a driver that was seen not to build on one of them is
        refused. A distribution patches the drivers of its own archive, which are not.
      - Defaults to those of C(ansible_facts.gpu_node_state.kernel) that are installed and run, are booted next or have headers.
    type: list
    elements: str
  lock:
    description:
      - Path of a lock file on the controller. Where it exists, the stack comes from it, whatever newer tables would
        choose, and a host it does not fit is refused with what changed.
    type: path
  renew:
    description: Whether to ignore the lock and resolve anew.
    type: bool
    default: false
  plan:
    description:
      - Plan of many hosts that this run has shown, as role P(allreduce.gpu.stack#role) makes it for playbook plan.
      - The stack it has for this host is taken and nothing is resolved, if the host was measured for that plan and
        O(profile), O(request) and O(interpreter) are still the same.
    type: dict
    default: {}
  on_conflict:
    description: Whether to fail when nothing fits, or to return the conflicts.
    type: str
    choices: [fail, report]
    default: fail
  explain:
    description: Component whose version is explained as C(explanation), with those next to it that were not chosen.
    type: str
    choices: [driver, horovod, tensorflow, pytorch, cupy, python, cuda, cudnn, nccl]
  publish:
    description: Whether to set the fact C(ansible_facts.gpu_stack).
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Decide the stack of this host from its facts
  allreduce.gpu.resolve_stack:
    request: "{{ gpu_stack_request | default({}) }}"
    publish: true

- name: Take a request by name, and the stack the cluster was planned with
  allreduce.gpu.resolve_stack:
    profile: pytorch-stable
    lock: "{{ inventory_dir }}/stack.lock.yml"

# The four reference systems.

- name: S0, four A40 in one server for image processing
  allreduce.gpu.resolve_stack:
    os: ubuntu 20.04
    gpus: [NVIDIA A40, NVIDIA A40, NVIDIA A40, NVIDIA A40]
    python: "3.10"
    request:
      driver: "535"
      tensorflow: "2.12.0"
      pytorch: "2.0.1"
      horovod: "0.28.1"
      cupy: latest

- name: S1, A100 nodes with InfiniBand and PyTorch for CUDA 12.1
  allreduce.gpu.resolve_stack:
    os: ubuntu 22.04
    gpus: [NVIDIA A100-SXM4-80GB, NVIDIA A100-SXM4-80GB, NVIDIA A100-SXM4-80GB, NVIDIA A100-SXM4-80GB]
    python: "3.10"
    request:
      driver: ">=530"
      cuda: "12.1"
      cudnn: "8.9"
      nccl: latest
      pytorch_index: cu121

- name: S2, A100 nodes on Rocky Linux 8, whose platform Python only ansible-core 2.16 can use
  allreduce.gpu.resolve_stack:
    os: rocky 8.10
    gpus: [NVIDIA A100-SXM4-40GB, NVIDIA A100-SXM4-40GB, NVIDIA A100-SXM4-40GB, NVIDIA A100-SXM4-40GB]
    python: "3.8"
    request:
      cuda: "12.1"
      nccl: latest
      pytorch: ">=2,<2.5"
      pytorch_index: cu121
    ansible_core: "2.16"

- name: S3, a workstation with what was current in 2021
  allreduce.gpu.resolve_stack:
    os: ubuntu 20.04
    gpus: [NVIDIA GeForce RTX 3090, NVIDIA GeForce RTX 3080]
    request:
      driver: "460"
      cuda: "11.2"

- name: Any of them by the name of its request
  allreduce.gpu.resolve_stack:
    os: ubuntu 22.04
    gpus: [NVIDIA A100-SXM4-80GB]
    profile: a100-ubuntu2204

- name: See why something cannot work, without failing
  allreduce.gpu.resolve_stack:
    os: ubuntu 20.04
    gpus: [A40]
    request:
      cuda: "12.0"
      tensorflow: "2.12.0"
    on_conflict: report
  register: answer
"""

RETURN = r"""
stack:
  description: The resolved stack; null when there is none.
  returned: always
  type: dict
  contains:
    table_version:
      description: Version of the compatibility tables.
      type: str
    os:
      description: C(id), C(version), C(arch) and C(family).
      type: dict
    gpus:
      description: Model, compute capability and count of every kind of GPU.
      type: list
      elements: dict
    driver:
      description: The driver; null where none is planned.
      type: dict
      contains:
        branch:
          description: Branch, such as V(535).
          type: str
        version:
          description: Version; of a distribution's archive the newest one that was seen.
          type: str
        source:
          description: V(nvidia), V(distribution), V(runfile), or V(vendor) for one that is left to whoever is in charge of it.
          type: str
        kernel_modules:
          description: V(open) or V(proprietary).
          type: str
        package_manager:
          description: V(apt) or V(dnf).
          type: str
        packages:
          description: Name and version of every package; a version may be an fnmatch pattern, or null for any.
          type: list
          elements: dict
        pinning_packages:
          description: Packages to install before, in a transaction of their own.
          type: list
          elements: dict
        components:
          description: Components of the distribution's archive that must be enabled.
          type: list
          elements: str
        module_stream:
          description: Stream of the module C(nvidia-driver); null where the distribution has no modules. Absent with apt.
          type: str
        held:
          description: Patterns of all driver packages, of any branch and source.
          type: list
          elements: str
        conflicting:
          description: Names and patterns of the other kernel modules and of other sources, which cannot stand beside it.
          type: list
          elements: str
        precompiled:
          description: Modules built by the distributor; null where there are none.
          type: dict
          contains:
            packages:
              description: Packages to install; empty where the module stream is enough.
              type: list
              elements: dict
            module_stream:
              description: The module stream to enable instead; null where there are none.
              type: str
            replaces:
              description: Names of planned packages that these stand in for.
              type: list
              elements: str
        dkms_module:
          description: Name by which DKMS knows the module.
          type: str
        owner:
          description: Who is in charge of a driver with the source V(vendor).
          type: str
          returned: with the source V(vendor)
        installer_options:
          description: How NVIDIA's installer is told which kernel modules to build; empty for packages.
          type: list
          elements: str
    fabric_manager:
      description:
        - C(version) and C(packages) of the fabric manager, with NVLink 5 also those of the subnet manager, and the
          C(kernel_modules) that these need; null where the GPUs need none.
      type: dict
    imex:
      description:
        - C(version) and C(packages) of the service by which nodes of one rack export GPU memory to each other.
      returned: where the NVSwitches of the GPUs are in other trays of the rack
      type: dict
    repository:
      description: NVIDIA's repository, its address, key and origin, when anything comes from it.
      type: dict
    cuda:
      description: The system toolkit, with C(version), C(home), C(packages) and C(held); null when nothing needs one.
      type: dict
    cudnn:
      description: cuDNN as a system library, with C(version), C(cuda) and C(packages); null when nothing needs it.
      type: dict
    nccl:
      description: NCCL as a system library, with C(version), C(cuda) and C(packages); null when nothing needs it.
      type: dict
    python:
      description: Python of the first environment.
      type: str
    environments:
      description: The environments.
      type: list
      elements: dict
      contains:
        name:
          description: V(main), or the framework with O(environments=split).
          type: str
        python:
          description: Its Python.
          type: str
        interpreter:
          description: Where its interpreter comes from.
          type: dict
          contains:
            source:
              description: V(distribution), V(standalone) or V(path).
              type: str
            path:
              description: The interpreter; null for a standalone build.
              type: str
            packages:
              description: The distribution's packages that bring it.
              type: list
              elements: str
        accelerator:
          description: V(cuda) or V(cpu).
          type: str
        requirements:
          description: What to install as wheels.
          type: list
          elements: str
        index:
          description: C(name) and C(url) of the index the framework's wheels come from; null for the usual one.
          type: dict
        libraries:
          description: The C(cuda), C(cudnn) and C(nccl) that PyTorch's build brings, each null where it is not known; null without CUDA.
          type: dict
        conda:
          description: The same for conda, as C(channels), C(specs) and the C(wheels) that go on top.
          type: dict
        frameworks:
          description: Version of every framework.
          type: dict
        build:
          description: How Horovod is compiled, as C(requirement), C(cxx_standard), C(environment) and C(build_isolation).
          type: dict
    disk_mib:
      description: What goes where and how much room it takes.
      type: list
      elements: dict
      contains:
        component:
          description: V(driver), V(cuda) or V(environment).
          type: str
        name:
          description: Name of the environment; null for all else.
          type: str
        part:
          description: Both, for people.
          type: str
        directory:
          description: Directory of the file system.
          type: str
        mib:
          description: MiB it takes.
          type: int
    reasons:
      description: Why each component is what it is.
      type: list
      elements: dict
    warnings:
      description: What to keep an eye on.
      type: list
      elements: str
    inputs:
      description: What the stack was resolved from.
      type: dict
    update:
      description: With a lock, what renewing it would change.
      type: list
      elements: str
    kind:
      description: Eight digits equal for hosts that get equal stacks.
      type: str
conflicts:
  description: The smallest sets of wishes and facts that clash.
  returned: always
  type: list
  elements: dict
  contains:
    rule:
      description: Name of the rule that objects; V(no-such-build) when nothing of that kind exists at all.
      type: str
    rules:
      description: All rules that together make the clash.
      type: list
      elements: str
    values:
      description: What was asked for or found, for each of C(between).
      type: dict
    between:
      description: The options that clash.
      type: list
      elements: str
    reasons:
      description: Why they clash, one sentence for each rule.
      type: list
      elements: str
    reason:
      description: The same as text.
      type: str
    alternatives:
      description: What to change instead; each was tried and is enough for the whole request. A null leaves something out.
      type: list
      elements: dict
    suggestion:
      description: The same as text, and what the host would have to be where no request helps.
      type: str
    source:
      description: Where the rule comes from.
      type: str
suggestion:
  description: The nearest request that resolves; null when there is a stack, or when no request resolves on this host.
  returned: always
  type: dict
  contains:
    request:
      description: The request to make instead.
      type: dict
    changes:
      description: What of it is different; null for what is left out.
      type: dict
    text:
      description: The same in one sentence, with what would be planned.
      type: str
explanation:
  description: Why O(explain) has its version; null for a component that is not planned, or without a stack.
  returned: with O(explain)
  type: dict
  contains:
    component:
      description: The component.
      type: str
    version:
      description: The version chosen, and its build or source; null where nothing asks for the component.
      type: str
    because:
      description: Why it was chosen.
      type: str
    rejected:
      description:
        - Up to four versions that are preferred or newer, each with its C(version), the C(rules) against it, what it clashes
          with C(between), and C(reasons).
      type: list
      elements: dict
warnings:
  description: Same as C(stack.warnings).
  returned: always
  type: list
  elements: str
"""
