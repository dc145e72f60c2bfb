#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: ssh_keys
short_description: Manage a user's SSH key pair, and rotate it
version_added: 0.1.0
description:
  - Creates the key pair of a user where there is none, and on request a next pair that replaces the first.
  - Works with the rights of that user alone, so that links of theirs lead to nothing they could not reach themselves. A private key is
    neither returned nor read, except by C(ssh-keygen) after an interruption.
author: "The allreduce.gpu authors (@allreduce)"
attributes:
  check_mode:
    description: Predicts changes without making them; nothing is known of a key that is still to be created.
    support: full
options:
  user:
    description: Name of the user.
    type: str
    required: true
  directory:
    description: The directory of the keys, the user's C(.ssh).
    type: path
    required: true
  kind:
    description: Type of the keys.
    type: str
    choices: [ed25519, ecdsa, rsa]
    default: ed25519
  comment:
    description: Comment of the keys. The rotation that a pair comes from is added to it.
    type: str
    default: ''
  rotation:
    description: Name of the rotation, such as a date. A pair that is of this rotation is not replaced again.
    type: str
    default: ''
  state:
    description:
      - V(present) keeps the pair that is there.
      - V(next) creates the pair that is to replace one that is not of O(rotation).
      - V(rotated) replaces the pair with that next one.
      - V(absent) removes the pairs that have O(comment), of every kind and rotation.
    type: str
    choices: [present, next, rotated, absent]
    default: present
  account:
    description:
      - >-
          Expected properties of the user's account. Where it is missing or different, nothing is read or changed, since the account must be set up
          before its keys.
    type: dict
    suboptions:
      uid:
        description: Number of the user and of the group.
        type: int
      group:
        description: Name of the user's group.
        type: str
        required: true
      home:
        description: Home directory.
        type: path
        required: true
      shell:
        description: Login shell.
        type: path
        required: true
  record:
    description: File owned by root to return, in which a role recorded other nodes.
    type: path
"""

EXAMPLES = r"""
- name: Make the key pair that replaces the present one
  allreduce.gpu.ssh_keys:
    user: trainer
    directory: /home/trainer/.ssh
    comment: trainer@gpu-1
    rotation: "2026-11"
    state: next
"""

RETURN = r"""
public_key:
  description: The public key of the pair, with its comment; null where there is none yet.
  returned: success
  type: str
  sample: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIN4V4Ca9qCz3zQ trainer@gpu-1
next_public_key:
  description: That of the pair that will replace it; null where there is none.
  returned: success
  type: str
account:
  description: Whether the account is as O(account) says; true without it.
  returned: success
  type: bool
rotated:
  description: Whether the pair is of the rotation; true without one.
  returned: success
  type: bool
record:
  description: The text of the recorded file and the time it was written at, null where there is none.
  returned: success
  type: dict
  sample: {text: "[]", time: 1763800000.0}
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host import accounts, key_pairs
from ..module_utils.host.ansible_module import label
from ..module_utils.host.as_user import as_user
from ..module_utils.machine.regular import LONGEST

NOTHING = {"public_key": None, "next_public_key": None, "rotated": True}


def keep(parameters, check):
    """Return {changed, …} of the pair, once it is as asked for; runs as the user."""
    place = [parameters[name] for name in ("directory", "kind", "comment", "rotation")]
    if parameters["state"] == "absent":
        gone = key_pairs.remove(parameters["directory"], parameters["comment"], check)
        return dict(NOTHING, changed=bool(gone))
    found = key_pairs.describe(*place)
    steps = key_pairs.plan(found, parameters["state"], parameters["rotation"])
    changed = bool(steps) if check else key_pairs.apply(steps, *place, label=label)
    return dict(found if check else key_pairs.describe(*place), changed=changed)


def recorded(path):
    """Return {text, time} of a file; None where it is not there."""
    if path is None or not os.path.isfile(path):
        return None
    with open(path, "rb") as stream:
        # One byte more than the controller takes: a file that is too long is refused there, not cut.
        return {"text": stream.read(LONGEST + 1).decode("utf-8", "replace"), "time": os.fstat(stream.fileno()).st_mtime}


ACCOUNT = {
    "uid": {"type": "int"},
    "group": {"type": "str", "required": True},
    "home": {"type": "path", "required": True},
    "shell": {"type": "path", "required": True},
}


def main():
    """Read the options, keep the pair, answer."""
    module = AnsibleModule(
        argument_spec={
            "user": {"type": "str", "required": True},
            "directory": {"type": "path", "required": True},
            "kind": {"type": "str", "choices": list(key_pairs.KINDS), "default": "ed25519"},
            "comment": {"type": "str", "default": ""},
            "rotation": {"type": "str", "default": ""},
            "state": {"type": "str", "choices": ["present", "next", "rotated", "absent"], "default": "present"},
            "account": {"type": "dict", "options": ACCOUNT},
            "record": {"type": "path"},
        },
        supports_check_mode=True,
    )
    absent, wanted = module.params["state"] == "absent", module.params["account"]
    if wanted is not None and not accounts.fits(module.params["user"], wanted):
        module.exit_json(changed=False, account=False, record=recorded(module.params["record"]), **NOTHING)
    try:
        answer = as_user(module.params["user"], lambda: keep(module.params, module.check_mode))
    except KeyError:
        if not absent and not module.check_mode:
            module.fail_json(msg="There is no user %(user)s whose keys could be kept." % module.params)
        answer = dict(NOTHING, changed=not absent)
    except (EnvironmentError, ValueError) as error:
        module.fail_json(msg="Cannot keep the keys of %s: %s." % (module.params["user"], error))
    module.exit_json(account=True, record=recorded(module.params["record"]), **answer)


if __name__ == "__main__":
    main()
