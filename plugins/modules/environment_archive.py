#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: environment_archive
short_description: Copy a Python environment from one node to another
version_added: 0.1.0
description:
  - Packs an environment below C(/opt/allreduce/envs) on a node that has it, and unpacks it on others in the place of theirs, which must have
    the same interpreter at the same path.
  - >-
      The archive is copied over SSH as O(user), continuing where an interrupted run stopped, and is used only if it has the SHA-256 of the one that
      was packed. The unpacked environment replaces the old one atomically.
author: "The allreduce.gpu authors (@allreduce)"
attributes:
  check_mode:
    description: Predicts changes without making them, and connects to no other node.
    support: full
  diff_mode:
    description: Shows nothing.
    support: none
options:
  name:
    description: Name of the environment.
    type: str
    required: true
  state:
    description:
      - V(packed) writes the archive, V(unpacked) copies and unpacks it, V(absent) removes it.
    type: str
    choices: [packed, unpacked, absent]
    required: true
  address:
    description: Address of the node that has the archive. Required with O(state=unpacked).
    type: str
  user:
    description: User who reaches that node by SSH, with the keys of role P(allreduce.gpu.cluster_ssh#role).
    type: str
    default: trainer
  sha256:
    description: RV(sha256) of the task that packed it. Required with O(state=unpacked).
    type: str
  bytes:
    description: RV(bytes) of the task that packed it. Required with O(state=unpacked).
    type: int
  keep:
    description: With O(state=unpacked), keep the archive, for other nodes to fetch it from this one.
    type: bool
    default: false
  directory:
    description: Name of the environment's directory, if it differs from O(name).
    type: str
  environments:
    description: Directory of the environments.
    type: path
    default: /opt/allreduce/envs
  archives:
    description: Directory of the archives. It is created if it is missing.
    type: path
    default: /opt/allreduce/cache/environments
"""

EXAMPLES = r"""
- name: Pack the environment on a node that has it
  allreduce.gpu.environment_archive:
    name: main
    state: packed
  become: true
  register: packed
  when: inventory_hostname == "gpu-1"

- name: Unpack it on the others
  allreduce.gpu.environment_archive:
    name: main
    state: unpacked
    address: 10.0.0.1
    sha256: "{{ hostvars['gpu-1'].packed.sha256 }}"
    bytes: "{{ hostvars['gpu-1'].packed.bytes }}"
  become: true
  when: inventory_hostname != "gpu-1"
"""

RETURN = r"""
sha256:
  description: SHA-256 of the archive.
  returned: with O(state=packed), but for check mode
  type: str
bytes:
  description: Its size.
  returned: with O(state=packed), but for check mode
  type: int
problem:
  description: Why it failed, for programs. Decide by C(code).
  returned: when it failed, but for errors of the file system
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host import environment_archive as archive


def main():
    """Read the options, do what the state asks for."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["packed", "unpacked", "absent"], "required": True},
            "address": {"type": "str"},
            "user": {"type": "str", "default": "trainer"},
            "sha256": {"type": "str"},
            "bytes": {"type": "int"},
            "keep": {"type": "bool", "default": False},
            "directory": {"type": "str"},
            "environments": {"type": "path", "default": archive.ENVIRONMENTS},
            "archives": {"type": "path", "default": archive.ARCHIVES},
        },
        required_if=[("state", "unpacked", ("address", "sha256", "bytes"))],
        supports_check_mode=True,
    )
    params = module.params
    place = archive.Place(params["name"], params["environments"], params["archives"], params["directory"])
    if module.check_mode:
        module.exit_json(changed=params["state"] != "absent" or archive.is_there(place))
    try:
        module.exit_json(**STATES[params["state"]](place, params))
    except archive.ArchiveError as error:
        module.fail_json(msg="%s." % error, problem=error.problem)
    except EnvironmentError as error:
        module.fail_json(msg="Environment %s was not copied: %s." % (params["name"], error))


def packed(place, dummy):
    """Write the archive."""
    return dict(archive.pack(place), changed=True)


def unpacked(place, params):
    """Fetch the archive and unpack it."""
    wanted = {"sha256": params["sha256"], "bytes": params["bytes"]}
    archive.fetch(place, params["address"], params["user"], wanted)
    try:
        archive.unpack(place)
    except Exception:
        archive.remove(place)
        raise
    if not params["keep"]:
        archive.remove(place)
    return {"changed": True}


def absent(place, dummy):
    """Remove the archive."""
    return {"changed": archive.remove(place)}


STATES = {"packed": packed, "unpacked": unpacked, "absent": absent}

if __name__ == "__main__":
    main()
