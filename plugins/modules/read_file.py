#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: read_file
short_description: Read a file of a node, up to a limit
version_added: 0.1.0
description:
  - Returns the content of a regular file. M(ansible.builtin.slurp) reads files of any size, which the controller then holds in memory,
    and waits for the other end of a pipe.
author: "The allreduce.gpu authors (@allreduce)"
attributes:
  check_mode:
    description: Changes nothing in any mode.
    support: full
  diff_mode:
    description: Shows nothing.
    support: none
options:
  path:
    description: Path of the file; a link is followed.
    type: path
    required: true
  limit:
    description: Number of bytes that the file has at most; the module fails if there are more.
    type: int
    default: 8388608
  end:
    description: Of a file with more bytes, return the last O(limit).
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Read the lock of an environment
  allreduce.gpu.read_file:
    path: /etc/allreduce/locks/main.txt
  register: lock

- name: Show the end of a log
  allreduce.gpu.read_file:
    path: /var/lib/dkms/nvidia/535.183.01/build/make.log
    limit: 65536
    end: true
"""

RETURN = r"""
content:
  description: Content of the file in base64.
  returned: success
  type: str
  sample: b3RoZXI9PTEuMAo=
"""

import base64

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.machine.regular import LONGEST, read_end, read_regular


def main():
    """Read, answer."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "limit": {"type": "int", "default": LONGEST},
            "end": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    path, limit = module.params["path"], module.params["limit"]
    try:
        content = read_end(path, limit, True)[0] if module.params["end"] else read_regular(path, limit, True)
    except (EnvironmentError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, content=base64.b64encode(content).decode("ascii"))


if __name__ == "__main__":
    main()
