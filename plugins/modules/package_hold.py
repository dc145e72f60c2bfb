#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: package_hold
short_description: Hold packages at their versions in every tool that could upgrade them
version_added: 0.1.0
description:
  - One declaration for what otherwise takes dpkg's selections (C(apt-mark hold)), apt preferences, the blacklist of
    unattended-upgrades, needrestart, dnf's plugin versionlock and the enabled stream of a dnf module.
  - The state is read from files; on RPM systems C(rpm) is asked once. Nothing else runs unless something changes.
  - Packages are held at the versions installed now. A package that is not installed is not held.
  - The declaration is recorded below C(/var/lib/allreduce/holds), so that M(allreduce.gpu.node_state) can report whether it is in effect.
author: "The allreduce.gpu authors (@allreduce)"
attributes:
  check_mode:
    description: Predicts changes without making them.
    support: full
  diff_mode:
    description: Shows what changes in each file and in dpkg's selections.
    support: full
options:
  name:
    description: Name of the hold, and of its files; holds of different names should name different packages.
    type: str
    required: true
  packages:
    description: Names of packages, with the wildcards V(*) and V(?).
    type: list
    elements: str
    required: true
  excluded:
    description: Packages to leave alone although O(packages) names them.
    type: list
    elements: str
    default: []
  services:
    description:
      - Services that needrestart does not restart after an upgrade, with the wildcards V(*) and V(?).
      - They are exempt in both states; an empty list removes that setting.
    type: list
    elements: str
    default: []
  module_stream:
    description:
      - Stream of a dnf module to enable, as C(module:stream), in both states. A stream that is enabled stays that way
        until someone changes it. Ignored where apt is in use.
    type: str
  kernel:
    description: Hold the kernel, its headers and the metapackages that bring new ones, too.
    type: bool
    default: false
  state:
    description:
      - V(held) keeps the packages where they are.
      - V(released) releases everything that O(packages) names, even if another tool held it, so that it can be upgraded.
    type: str
    choices: [held, released]
    default: held
  lock_timeout:
    description: Seconds to wait while another package manager works.
    type: int
    default: 600
  root:
    description: Root directory of the system, to prepare a mounted image.
    type: path
    default: /
"""

EXAMPLES = r"""
- name: Hold the driver
  allreduce.gpu.package_hold:
    name: driver
    packages: ['*nvidia*', 'libcuda*']
    excluded: ['*nvidia-container*']
    services: ['nvidia-*']
    module_stream: nvidia-driver:580-open

- name: Let it go for an upgrade
  allreduce.gpu.package_hold:
    name: driver
    packages: ['*nvidia*', 'libcuda*']
    state: released
"""

RETURN = r"""
held:
  description: Versions that are kept, by package.
  returned: success
  type: dict
  sample: {nvidia-utils-580: 580.65.06-0ubuntu1}
changed_paths:
  description: Files that changed, or would change in check mode.
  returned: success
  type: list
  elements: str
  sample: [/etc/apt/preferences.d/allreduce-driver]
selections:
  description: Selections that dpkg was given, or would be given in check mode, by package.
  returned: success
  type: dict
  sample: {nvidia-utils-580: hold}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host import config_files
from ..module_utils.host.ansible_module import program_runner, replace_file
from ..module_utils.machine.files import FileTree
from ..module_utils.packages import hold as package_hold

STRINGS = {"type": "list", "elements": "str"}
SPEC = {
    "name": {"type": "str", "required": True},
    "packages": dict(STRINGS, required=True),
    "excluded": dict(STRINGS, default=[]),
    "services": dict(STRINGS, default=[]),
    "module_stream": {"type": "str"},
    "kernel": {"type": "bool", "default": False},
    "state": {"type": "str", "choices": ["held", "released"], "default": "held"},
    "lock_timeout": {"type": "int", "default": 600},
    "root": {"type": "path", "default": "/"},
}


def main():
    """Plan, then write the files and tell dpkg."""
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True)
    tree, execute = FileTree(module.params["root"]), program_runner(module)

    def output(arguments):
        root = ["--root", tree.root] if tree.root != "/" else []
        rc, out, err = module.run_command(arguments + root)
        if rc != 0:
            module.fail_json(msg="The installed packages cannot be read: %s" % (err or out).strip())
        return out

    def dpkg(lines):
        return execute(["dpkg", "--admindir=" + tree.path("/var/lib/dpkg"), "--set-selections"], lines)

    def write(path, content):
        replace_file(module, path, config_files.as_bytes(content))

    try:
        plan = package_hold.plan(tree, output, module.params)
        files = [(wanted, found, config_files.plan(wanted, found)) for wanted, found in plan["files"]]
        if not module.check_mode:
            package_hold.apply(plan, files, write, dpkg, module.params["lock_timeout"])
    except (EnvironmentError, KeyError, ValueError) as error:
        module.fail_json(msg="%s." % error)
    paths = [wanted["path"] for wanted, _found, steps in files if steps]
    selections, diff = plan["selections"], package_hold.diff(files, plan["selections"])
    module.exit_json(changed=bool(diff), changed_paths=paths, selections=selections, held=plan["held"], diff=diff)


if __name__ == "__main__":
    main()
