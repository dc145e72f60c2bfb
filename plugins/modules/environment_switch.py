#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: environment_switch
short_description: Activate a Python environment after testing it
version_added: 0.1.0
description:
  - >-
      Compares an environment below C(/opt/allreduce/envs), a directory C(.NAME-DIGEST), with its lock, imports modules in it, and then makes the link
      O(name) point to it, atomically. If a test fails, the active environment stays active, and the tested one is no longer kept for a rollback.
  - Older environments of that name are then removed, except O(keep) of them and those that processes use.
  - A directory C(NAME), from before links were used, becomes the directory O(directory) where that does not exist, and is kept as
    C(.NAME-former) otherwise.
author: "The allreduce.gpu authors (@allreduce)"
attributes:
  check_mode:
    description: Predicts the change without making it, and verifies nothing.
    support: full
  diff_mode:
    description: Shows which directory replaces which.
    support: full
options:
  name:
    description: Name of the environment.
    type: str
    required: true
  directory:
    description:
      - Directory to activate, C(.NAME-) and twelve hexadecimal digits. It may be empty in check mode, where it is not known yet.
    type: str
    required: true
  lock:
    description: Text of the lock of its packages. It is recorded in O(locks) as C(NAME.txt), and in the environment.
    type: str
    required: true
  conda_lock:
    description:
      - Text of the lock of conda's packages, recorded as C(NAME.conda.txt), for an environment that conda made. It may have packages
        that O(lock) lacks.
    type: str
    default: ""
  compiled:
    description: Packages in addition to those of O(lock), with their versions.
    type: dict
    default: {}
  modules:
    description: Modules to import.
    type: list
    elements: str
    default: []
  user:
    description: Unprivileged user who imports them; C(nobody) where there is no such user.
    type: str
    default: trainer
  keep:
    description: Number of older environments to keep, the most recently used ones.
    type: int
    default: 1
  environments:
    description: Directory of the environments.
    type: path
    default: /opt/allreduce/envs
  locks:
    description: Directory of the locks. It is created if it is missing.
    type: path
    default: /etc/allreduce/locks
"""

EXAMPLES = r"""
- name: Activate the environment
  allreduce.gpu.environment_switch:
    name: main
    directory: .main-0123456789ab
    lock: "{{ lookup('ansible.builtin.file', 'main.txt') }}"
    modules: [torch]
  become: true
"""

RETURN = r"""
former:
  description: The directory that was in use before; empty where the environment was a directory itself, null where there was none.
  returned: success
  type: str
removed:
  description: Directories that were removed.
  returned: success, except in check mode
  type: list
  elements: str
used:
  description: Directories that would have been removed, if no process used them.
  returned: success, except in check mode
  type: list
  elements: str
problem:
  description: Why the environment cannot be used, for programs. Decide by C(code).
  returned: when it failed, except for errors of the file system
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host import probes
from ..module_utils.packages import environment_switch as switching
from ..module_utils.packages import environments


def main():
    """Read the options; compare, and take the environment into use where it is not."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "directory": {"type": "str", "required": True},
            "lock": {"type": "str", "required": True},
            "conda_lock": {"type": "str", "default": ""},
            "compiled": {"type": "dict", "default": {}},
            "modules": {"type": "list", "elements": "str", "default": []},
            "user": {"type": "str", "default": "trainer"},
            "keep": {"type": "int", "default": 1},
            "environments": {"type": "path", "default": environments.ENVIRONMENTS},
            "locks": {"type": "path", "default": environments.LOCKS},
        },
        supports_check_mode=True,
    )
    params = module.params
    refuse_bad_input(module, params)
    place = switching.Place(params["name"], params["directory"], params["environments"], params["locks"])
    texts = {environments.LOCK: params["lock"], environments.CONDA_LOCK: params["conda_lock"]}
    texts = {file: text for file, text in texts.items() if text}
    answer = {"changed": switching.differs(place, texts), "former": place.current(), "diff": switching.diff(place)}
    if module.check_mode:
        module.exit_json(**answer)
    try:
        found = None if place.is_adopted() else switching.verify(place, params, probes.known_user(params["user"]))
        if found:
            switching.forget(place)
            module.fail_json(msg=switching.explain(place, found), problem=found)
        # What says that it is whole must not be on the disk before its files are.
        module.run_command(["sync", "--file-system", place.link if place.is_adopted() else place.new])
        switching.switch(place, texts)
    except EnvironmentError as error:
        module.fail_json(msg=switching.explain_error(place, error))
    try:
        answer.update(switching.prune(place, params["keep"]))
    except EnvironmentError as error:
        module.fail_json(msg="Environment %s is in use, but older ones were not removed: %s." % (place.name, error))
    module.exit_json(**answer)


def refuse_bad_input(module, params):
    """Fail for a directory that is not one of this environment, and for a negative number."""
    known = params["directory"] or not module.check_mode
    if "/" in params["directory"] or known and environments.name_of(params["directory"]) != params["name"]:
        module.fail_json(
            msg="directory is '%(directory)s': write .%(name)s- and twelve hexadecimal digits" % params,
        )
    if params["keep"] < 0:
        module.fail_json(msg="keep is %(keep)d: write 0 or more" % params)


if __name__ == "__main__":
    main()
