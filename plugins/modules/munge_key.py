#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: munge_key
short_description: Keep the key with which the hosts of a Slurm cluster trust each other
version_added: 0.1.0
description:
  - Makes the key of munge on the first host and returns it, or brings it to another one. Only its user can read the file.
  - Restarts nothing, and reports a change until munged has been restarted with the key. Works before the package of munge is
    installed, which then takes the file over.
  - The key is a secret. Register the answer only in a task with C(no_log=true).
author: "The allreduce.gpu authors (@allreduce)"
attributes:
  check_mode:
    description: Predicts changes without making them.
    support: full
  diff_mode:
    description: Shows no key, only that it changes.
    support: full
options:
  key:
    description: The key in base64. Without it, the key that is there stays, and where there is none, one of 1024 random bytes is made.
    type: str
  path:
    description: File with the key.
    type: path
    default: /etc/munge/munge.key
"""

EXAMPLES = r"""
- name: Make the key of the cluster on its first host
  allreduce.gpu.munge_key:
  register: munge
  no_log: true
  when: inventory_hostname == groups.controllers[0]

- name: Give it to the others
  allreduce.gpu.munge_key:
    key: "{{ hostvars[groups.controllers[0]].munge.key }}"
  no_log: true
"""

RETURN = r"""
key:
  description: The key in base64, where O(key) was not given and there is one. Only a task with C(no_log=true) may keep it.
  returned: success
  type: str
  sample: ''
"""

import base64
import binascii

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host import munge_key
from ..module_utils.machine.files import FileTree


def main():
    """Read the options, keep the key, answer."""
    module = AnsibleModule(
        argument_spec={"key": {"type": "str", "no_log": True}, "path": {"type": "path", "default": munge_key.PATH}},
        supports_check_mode=True,
    )
    path, given = module.params["path"], module.params["key"]
    try:
        wanted = base64.b64decode(given.encode("ascii")) if given else None
        changed, key = munge_key.bring(FileTree(), path, wanted, munge_key.owner(), module.check_mode)
    except (EnvironmentError, ValueError, binascii.Error) as error:
        module.fail_json(msg="The key of munge cannot be kept: %s." % error)
    shown = {"before": "another key, or none\n", "after": "the key of the cluster\n"} if changed else {}
    answer = {} if given or key is None else {"key": base64.b64encode(key).decode("ascii")}
    module.exit_json(changed=changed, diff=dict(shown, before_header=path, after_header=path), **answer)


if __name__ == "__main__":
    main()
