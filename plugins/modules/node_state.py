#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: node_state
short_description: Gather the installed GPU stack of a node
version_added: 0.1.0
description:
  - Reads kernels, packages, DKMS modules, driver, SELinux, fapolicyd, services, disk space and Python environments of a node, and the
    files that roles wrote.
  - Files are read first; systemd is asked once, on RPM systems C(rpm) once, and C(grubby) or C(modinfo) only for what files do not show.
  - Never changes the node. What cannot be known is null, never a guess.
author: "The allreduce.gpu authors (@allreduce)"
attributes:
  check_mode:
    description: Runs in check mode exactly as otherwise.
    support: full
  facts:
    description: Returns a fact.
    support: full
options:
  packages:
    description:
      - Shell patterns of the package names to report. Packages that match none are left out, and count as not installed
        wherever the fact is compared with a plan.
    type: list
    elements: str
    default: ['*']
  services:
    description: Names of the systemd services to report. By default those that roles of this collection are in charge of.
    type: list
    elements: str
  paths:
    description: Directories whose free space is reported.
    type: list
    elements: path
    default: [/, /opt, /opt/allreduce/cache, /opt/allreduce/envs, /var]
  root:
    description:
      - Directory to read in place of the root directory, to examine a recorded machine.
      - With any other value than V(/) no program is run, and the state of services is null. NVML is looked for right in the directory.
    type: path
    default: /
  gpus:
    description: Also return fact C(gpu_node), as M(allreduce.gpu.gpu_facts) does, which saves sending a second module.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Measure the node
  allreduce.gpu.node_state:

- name: Show which kernels have an NVIDIA module
  ansible.builtin.debug:
    msg: "{{ ansible_facts.gpu_node_state.dkms }}"
"""

RETURN = r"""
ansible_facts:
  description: The fact, and with O(gpus) C(gpu_node) of M(allreduce.gpu.gpu_facts).
  returned: success
  type: dict
  contains:
    gpu_node_state:
      description: What is on the node.
      returned: success
      type: dict
      sample:
        kernel: {running: 6.1.0-40-amd64, installed: [6.1.0-40-amd64], headers: [6.1.0-40-amd64], newest: 6.1.0-40-amd64,
                 next_boot: 6.1.0-40-amd64, partial: [], driver_modules: {6.1.0-40-amd64: true}}
        boot_id: 0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0
        container: false
        driver_owner: null
        package_manager: apt
        packages: {nvidia-kernel-dkms: 535.261.03-1}
        leftover_packages: {nvidia-tesla-470-alternative: 470.256.02-1}
        fips: false
        package_manager_interrupted: false
        package_manager_holder: null
        package_holds: {driver: {packages: ['nvidia-*'], excluded: [], services: [], module_stream: null, kernel: false, kept: true}}
        apt_components: [main, contrib, non-free, non-free-firmware]
        apt_mirrors: [{uri: 'http://archive.example.org/debian', suite: bookworm, components: [main], signed_by: null}]
        apt_contradictions: []
        dnf_repositories: null
        dkms: [{module: nvidia-current, version: 535.261.03, kernel: 6.1.0-40-amd64, arch: x86_64, status: installed}]
        driver: {loaded: null, installed: 535.261.03}
        secure_boot: {enforced: true, shim: true, certificate: /var/lib/dkms/mok.pub, fingerprint: null, key: enrolled}
        fapolicyd: {active: true, permissive: false, rules: equal, loaded: true, others: false}
        selinux: {mode: enforcing, configured: enforcing, booleans: {deny_execmem: {active: false, pending: false}}}
        services: {chrony: {enabled: true, active: true, outdated: false}}
        cdi: {/etc/cdi/nvidia.yaml: 535.261.03}
        kernel_modules: {ib_umad: {loaded: false, at_boot: false}}
        modprobe_overrides: [{file: /etc/modprobe.d/zz.conf, line: 1, module: nouveau, parameter: modeset, value: '1', ours: '0'}]
        disk_free_mib: {/: 20480}
        cuda_alternative: {manual: true, target: /usr/local/cuda-12.4}
        nvml_binding: 0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0
        environments: {main: {python: 3.11.2, home: /usr/bin, target: .main-0123456789ab, packages: {torch: 2.13.0+cpu},
                              changed_files: {},
                              lock: {request: 0123456789abcdef, packages: {torch: 2.13.0+cpu}, digest: 76543210fedcba98},
                              horovod: null, conda: null}}
        files: {/etc/modprobe.d/allreduce-nouveau.conf: "file 0644 root:root 0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0"}
        files_changed: {/etc/modprobe.d/allreduce-nvidia.conf: "file 0644 root:root fcde2b2edba56bf408601fb721fe9b5c338d10ee429ea04fae5511b68fbf8fb9"}
        environments_kept: [{directory: .main-0123456789ab, name: main, request: 0123456789abcdef}]
        health: null
        horovod_builds: {}
        uv: 0.13.9
        reboot_pending: null
        reboot_recorded: false
        records: [qos, tuning]
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host.ansible_module import program_output
from ..module_utils.machine.deadline import SECONDS, measure_within
from ..module_utils.machine.files import FileTree
from ..module_utils.machine.nvml import DEFAULT_LIBRARY
from ..module_utils.node.state import read_node_state


def main():
    """Read the options, measure, answer."""
    strings = {"type": "list", "elements": "str"}
    module = AnsibleModule(
        argument_spec={
            "packages": dict(strings, default=["*"]),
            "services": strings,
            "paths": {
                "type": "list",
                "elements": "path",
                "default": ["/", "/opt", "/opt/allreduce/cache", "/opt/allreduce/envs", "/var"],
            },
            "root": {"type": "path", "default": "/"},
            "gpus": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )

    tree, run = FileTree(module.params["root"]), program_output(module, module.params["root"])
    services = module.params["services"] or []  # the action names them
    state = read_node_state(tree, run, module.params["packages"], services, module.params["paths"])
    facts = {"gpu_node_state": state}
    if module.params["gpus"]:
        root = module.params["root"]
        library = DEFAULT_LIBRARY if root == "/" else os.path.join(root, DEFAULT_LIBRARY)
        trees = [FileTree(os.path.join(root, name)) for name in ("sys", "proc")]
        facts["gpu_node"] = measure_within(SECONDS, trees[0], trees[1], library)
    module.exit_json(changed=False, ansible_facts=facts)


if __name__ == "__main__":
    main()
