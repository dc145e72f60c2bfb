#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: environment_archive
short_description: Copy the wheels of a Python environment from one node to another
version_added: 0.1.0
description:
  - Downloads the wheels of an environment on one node, and copies them from there to others, so that these need no package index.
  - >-
      Each wheel counts only with the SHA-256 that O(wheels) has for it, which is that of the lock: neither the index nor the node that it comes from
      has to be trusted. Nothing is unpacked; uv installs from the directory.
  - The wheels are copied over SSH as O(user), continuing where an interrupted run stopped.
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
      - V(downloaded) fetches the wheels from their addresses, V(copied) from another node, V(absent) removes them.
    type: str
    choices: [downloaded, copied, absent]
    required: true
  wheels:
    description: The wheels; a file in the directory of the environment that is none of them is removed. Required unless O(state=absent).
    type: list
    elements: dict
    suboptions:
      file:
        description: Name of the wheel.
        type: str
        required: true
      sha256:
        description: Its SHA-256.
        type: str
        required: true
      bytes:
        description: >-
          Its size, RV(wheels) of the task that downloaded it. Required with O(state=copied). With O(state=downloaded), nothing is
          downloaded unless there is room for so much.
        type: int
      url:
        description: Its address, which may be V(file:///…). Required with O(state=downloaded).
        type: str
  sources:
    description: Addresses of package indexes, which have the user names and passwords that those of the wheels lack.
    type: list
    elements: str
    default: []
  address:
    description: Address of the node that has the wheels. Required with O(state=copied).
    type: str
  user:
    description: User who reaches that node by SSH, with the keys of role P(allreduce.gpu.cluster_ssh#role).
    type: str
    default: trainer
  directory:
    description: Directory with a directory for each environment. It is created if it is missing.
    type: path
    default: /opt/allreduce/cache/environments
  environments:
    description: Directory of the environments. Where it is on another file system, that one must have room for the wheels, too.
    type: path
    default: /opt/allreduce/envs
"""

EXAMPLES = r"""
- name: Download the wheels on a node that reaches the index
  allreduce.gpu.environment_archive:
    name: main
    state: downloaded
    wheels:
      - file: filelock-4.3.1-py3-none-any.whl
        sha256: 79e43df8e9fe509cd83a3899a7c186c8077cbbe4d200a1ed3705c2f3bb6bc487
        url: https://mirror.example.org/filelock-4.3.1-py3-none-any.whl
  become: true
  register: downloaded
  when: inventory_hostname == "gpu-1"

- name: Copy them to the others
  allreduce.gpu.environment_archive:
    name: main
    state: copied
    address: 10.0.0.1
    wheels:
      - file: filelock-4.3.1-py3-none-any.whl
        sha256: 79e43df8e9fe509cd83a3899a7c186c8077cbbe4d200a1ed3705c2f3bb6bc487
        bytes: 244559
  become: true
  when: inventory_hostname != "gpu-1"
"""

RETURN = r"""
wheels:
  description: The wheels, each with C(file), C(sha256) and C(bytes).
  returned: with O(state=downloaded), except in check mode
  type: list
  elements: dict
problem:
  description: Why it failed, for programs. Decide by C(code).
  returned: when it failed, except for errors of the file system
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host import environment_wheels as carry
from ..module_utils.host.download import read_proxies

WHEEL = {
    "file": {"type": "str", "required": True},
    "sha256": {"type": "str", "required": True},
    "bytes": {"type": "int"},
    "url": {"type": "str"},
}


def main():
    """Read the options, do what the state asks for."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["downloaded", "copied", "absent"], "required": True},
            "wheels": {"type": "list", "elements": "dict", "options": WHEEL},
            "sources": {"type": "list", "elements": "str", "default": [], "no_log": True},
            "address": {"type": "str"},
            "user": {"type": "str", "default": "trainer"},
            "directory": {"type": "path", "default": carry.WHEELS},
            "environments": {"type": "path", "default": carry.ENVIRONMENTS},
        },
        required_if=[("state", "downloaded", ["wheels"]), ("state", "copied", ["wheels", "address"])],
        supports_check_mode=True,
    )
    params = module.params
    if params["name"] in ("", ".", "..") or "/" in params["name"]:
        module.fail_json(msg="name is '%(name)s': write the name of an environment, without a directory." % params)
    place = carry.Place(params["name"], params["directory"])
    if module.check_mode:
        module.exit_json(changed=params["state"] != "absent" or carry.is_there(place))
    try:
        module.exit_json(**STATES[params["state"]](place, params))
    except carry.WheelsError as error:
        module.fail_json(msg="%s." % error, problem=error.problem)
    except EnvironmentError as error:
        module.fail_json(msg="The wheels of environment %s were not copied: %s." % (params["name"], error))


def downloaded(place, params):
    """Download the wheels."""
    found = carry.fetch(place, params["wheels"], params["sources"], read_proxies(), params["environments"])
    return {"changed": True, "wheels": [{key: one[key] for key in ("file", "sha256", "bytes")} for one in found]}


def copied(place, params):
    """Copy the wheels from another node; leave nothing where that fails."""
    try:
        carry.copy(place, params["wheels"], params["address"], params["user"], params["environments"])
    except Exception:
        carry.remove(place)
        raise
    return {"changed": True}


def absent(place, dummy):
    """Remove the wheels."""
    return {"changed": carry.remove(place)}


STATES = {"downloaded": downloaded, "copied": copied, "absent": absent}

if __name__ == "__main__":
    main()
