#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: gpu_facts
short_description: Measure the GPUs of a node, their links, adapters and topology
version_added: 0.1.0
description:
  - Reads PCI devices from sysfs and the driver's state from procfs first, and NVML second, and reports where they differ.
  - Works without a driver, in containers, where a device cgroup hides GPUs, and on hosts without any GPU.
  - Starts no program. Unknown values are null, never a guess.
  - Can be used in C(facts_modules).
  - The node keeps the module's code as compiled, in C(/var/cache/allreduce) for root and in C(~/.cache/allreduce) for another user.
author: "The allreduce.gpu authors (@allreduce)"
extends_documentation_fragment: [allreduce.gpu.measured_machine]
attributes:
  check_mode:
    description: Runs in check mode exactly as otherwise.
    support: full
  facts:
    description: Returns a fact.
    support: full
options:
  pci_databases:
    description:
      - Copies of the public PCI ID database on the node. The first that exists provides the names of GPUs
        (C(pci_name)) before any driver does.
    type: list
    elements: path
    default: [/usr/share/misc/pci.ids, /usr/share/hwdata/pci.ids]
  record:
    description:
      - A directory on the node, absent or empty, into which everything that was read is written, so that the node can be examined
        elsewhere and becomes a test of this collection. C(sys) and C(proc) in it are for O(sysfs_root) and O(procfs_root), and
        C(profile) is what NVML answered. Not in check mode. Module M(allreduce.gpu.gpu_health) records what its checks read, too.
    type: path
  seconds:
    description:
      - Seconds after which a driver that has not answered counts as hanging. The machine is then measured without NVML, which
        C(driver.nvml_state) and C(problems) say, and a process that hangs in the kernel stays behind on the node. Not while recording.
    type: int
    default: 60
  filter:
    description: Accepted and ignored; the setup action passes it to every facts module.
    type: list
    elements: str
  gather_subset:
    description: Accepted and ignored; the setup action passes it to every facts module.
    type: list
    elements: str
  gather_timeout:
    description: Accepted and ignored; the setup action passes it to every facts module.
    type: int
  fact_path:
    description: Accepted and ignored; the setup action passes it to every facts module.
    type: path
"""

EXAMPLES = r"""
- name: Measure the GPUs
  allreduce.gpu.gpu_facts:

- name: Examine a recorded machine
  allreduce.gpu.gpu_facts:
    sysfs_root: /tmp/recorded/sys
    procfs_root: /tmp/recorded/proc
    nvml_library: /tmp/recorded/libnvidia-ml.so.1

# Needs jmespath on the controller, and the collection community.general.
- name: Show the GPUs whose PCIe link is slower than it could be
  ansible.builtin.debug:
    msg: "{{ ansible_facts.gpu_node | community.general.json_query('gpus[?pcie.width < pcie.max_width].{name: name, width: pcie.width}') }}"
"""

RETURN = r"""
ansible_facts:
  description: The fact.
  returned: success
  type: dict
  contains:
    gpu_node:
      description: The measured machine.
      returned: success
      type: dict
      contains:
        driver:
          description:
            - Versions of the loaded kernel module and of the library.
            - C(nvml) is C(ok) or the sentence that says why not; C(nvml_state) is C(ok) or the code of that sentence.
          type: dict
          returned: success
          sample: {loaded_version: 535.261.03, library_version: 535.261.03, cuda_driver_version: "12.2",
                   kernel_modules: proprietary, nvml: ok, nvml_state: ok}
        gpus:
          description:
            - GPUs in the order of NVML, then those that NVML does not show.
            - C(name) is NVML's, C(pci_name) what the node's PCI ID database says, such as C(GA102GL [A40]).
            - C(nvml_errors) has the functions of NVML that failed and the codes why; what a GPU does not have is not among
              them. C(kernel_driver) is the driver that is bound to it.
            - C(fabric) is what NVML says of the GPU's place in the NVLink fabric, C(state), C(rack), C(domain) and C(health), a list
              that is empty where all is well.
            - C(max_clocks_mhz) has the highest clocks C(graphics), C(sm) and C(memory) that NVML tells, C(vbios_version) and
              C(inforom_version) the firmware.
            - C(vgpu) is whether a hypervisor's vGPU software made the GPU; null where the user may not know it.
          type: list
          elements: dict
          returned: success
        nvswitches:
          description: Number and PCI addresses of the NVSwitches.
          type: dict
          returned: success
          sample: {count: 0, pci_bus_ids: []}
        fabric:
          description:
            - Whether a fabric manager is needed, the state of the NVLink fabric, and its identity if it spans a rack.
          type: dict
          returned: success
          sample: {manager_needed: false, state: null, domain: null}
        nics:
          description: Host channel adapters with their ports. C(pci_device_id) tells models apart, C(board_id) boards with the same firmware.
          type: list
          elements: dict
          returned: success
        topology:
          description: For each GPU and NIC its distance to every other in the codes of C(nvidia-smi topo -m).
          type: dict
          returned: success
          sample: {GPU0: {GPU0: X, GPU1: NV12}, GPU1: {GPU0: NV12, GPU1: X}}
        numa_distances:
          description: The kernel's distances between the NUMA nodes of GPUs and NICs; empty if it does not report them.
          type: dict
          returned: success
          sample: {"0": {"0": 10, "1": 32}, "1": {"0": 32, "1": 10}}
        affinity:
          description:
            - For each GPU its CPUs, its NUMA node and its NICs, best first.
            - A NIC's port with the link layer and rate of the node's rails comes before nearer ones; then distance, NUMA node
              and PCI address decide.
          type: dict
          returned: success
        findings:
          description:
            - Problems for programs, in the order of C(problems). Decide by their C(code).
            - C(subject) is a GPU as in C(topology), a PCI address or null; C(detail) has the values of the sentence.
          type: list
          elements: dict
          returned: success
          sample:
            - {code: pcie_link_narrow, subject: GPU1, detail: {width: 8, max_width: 16}}
        problems:
          description: Problems for people, one sentence for each of C(findings).
          type: list
          elements: str
          returned: success
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.machine.archive import compile_once


def main():
    """Read the options, measure, answer."""
    compile_once("gpu_facts")
    from ..module_utils.machine.deadline import SECONDS, measure_within
    from ..module_utils.machine.files import FileTree
    from ..module_utils.machine.pci_names import DATABASES

    module = AnsibleModule(
        argument_spec={
            "sysfs_root": {"type": "path", "default": "/sys"},
            "procfs_root": {"type": "path", "default": "/proc"},
            "nvml_library": {"type": "str", "default": "libnvidia-ml.so.1"},
            "pci_databases": {"type": "list", "elements": "path", "default": list(DATABASES)},
            "record": {"type": "path"},
            "seconds": {"type": "int", "default": SECONDS},
            "filter": {"type": "list", "elements": "str"},
            "gather_subset": {"type": "list", "elements": "str"},
            "gather_timeout": {"type": "int"},
            "fact_path": {"type": "path"},
        },
        supports_check_mode=True,
    )
    parameters = module.params
    roots, library, databases = parameters["sysfs_root"], parameters["nvml_library"], parameters["pci_databases"]
    roots = (roots, parameters["procfs_root"])
    place = None if module.check_mode else parameters["record"]
    try:
        if place:
            from ..module_utils.machine.gpu_node import measure
            from ..module_utils.machine.recording import Recording

            recording = Recording(place)
            trees = [recording.tree(name, root) for name, root in zip(("sys", "proc"), roots)]
            node = measure(trees[0], trees[1], library, databases, recording.opener)
            recording.finish(node)
        else:
            node = measure_within(parameters["seconds"], FileTree(roots[0]), FileTree(roots[1]), library, databases)
    except (EnvironmentError, ValueError) as error:
        module.fail_json(msg="Cannot record the machine: %s." % error)
    module.exit_json(changed=bool(place), ansible_facts={"gpu_node": node})


if __name__ == "__main__":
    main()
