#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: fapolicyd
short_description: Allow the collection's programs in fapolicyd
version_added: 0.1.0
description:
  - Keeps C(/etc/fapolicyd/rules.d/38-allreduce.rules) and loads the rules with C(fagenrules --load), even where the file already exists but
    the rules that were compiled last lack it. Releases before 1.3 are restarted, as they read rules only when they start.
  - For hosts that have fapolicyd, as the fact C(gpu_node_state.fapolicyd) shows.
author: "The allreduce.gpu authors (@allreduce)"
attributes:
  check_mode:
    description: Predicts changes without making them.
    support: full
  diff_mode:
    description: Shows the rules.
    support: full
options:
  state:
    description: V(absent) removes the file, and loads the rules without it.
    type: str
    choices: [present, absent]
    default: present
  root:
    description: Directory that takes the place of C(/), for tests. Nothing is loaded there.
    type: path
    default: /
seealso:
  - module: allreduce.gpu.node_state
"""

EXAMPLES = r"""
- name: Let fapolicyd allow what the collection installs
  allreduce.gpu.fapolicyd:
  become: true
"""

RETURN = r"""
steps:
  description: What was done, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: [write, load]
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host import fapolicyd
from ..module_utils.host.ansible_module import replace_file
from ..module_utils.machine.files import FileTree

OLD = "%s has fapolicyd's rules in one file, so those of rules.d cannot be loaded: split it up as fagenrules(8) says"


def main():
    """Read, plan, take the steps."""
    options = {
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "root": {"type": "path", "default": "/"},
    }
    module = AnsibleModule(argument_spec=options, supports_check_mode=True)
    tree, state = FileTree(module.params["root"]), module.params["state"]
    before, steps = tree.text(fapolicyd.PATH), fapolicyd.plan(state, fapolicyd.read_rules(tree))
    if state == "present" and tree.exists(fapolicyd.OLD_RULES):
        module.fail_json(msg=OLD % fapolicyd.OLD_RULES)
    if not module.check_mode:
        apply(module, tree, steps)
    after = fapolicyd.RULES if state == "present" else ""
    diff = {
        "before_header": fapolicyd.PATH,
        "after_header": fapolicyd.PATH,
        "before": before + "\n" if before else "",
        "after": after,
    }
    module.exit_json(changed=bool(steps), steps=steps, diff=diff)


def apply(module, tree, steps):
    """Take the steps."""
    path = tree.path(fapolicyd.PATH)
    if "write" in steps:
        replace_file(module, path, fapolicyd.RULES.encode("utf-8"))
        os.chmod(path, 0o644)
    if "remove" in steps:
        os.unlink(path)
    if "load" in steps and tree.root == "/":
        load(module)


def load(module):
    """Compile the rules and have the daemon take them, if it runs; before release 1.3 it reads them only when it starts."""
    program = module.get_bin_path("fagenrules", True, ["/usr/sbin"])
    module.run_command([program, "--load"], check_rc=True)
    client = module.get_bin_path("fapolicyd-cli", True, ["/usr/sbin"])
    if not fapolicyd.reloads("".join(module.run_command([client, "--help"])[1:])):
        module.run_command(["systemctl", "try-restart", "fapolicyd"], check_rc=True)


if __name__ == "__main__":
    main()
