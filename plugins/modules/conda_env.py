#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: conda_env
short_description: Create a conda environment with exactly the packages of an explicit lock
version_added: 0.1.0
description:
  - >-
      Creates a conda environment with the packages that an explicit lock names by URL and SHA-256, and recreates it where a package differs by name,
      version, build or SHA-256, where a file is not as it was installed, and where an installation was interrupted. If that fails, the previous
      environment is restored.
  - Uses micromamba or mamba 2.1 or newer, or conda 24.9 or newer, which support SHA-256 in locks, or C(rattler), which role
    P(allreduce.gpu.python_env#role) installs from the package index. It installs none of them.
  - C(rattler) takes each package from the first of O(channels) that has it, and runs no scripts of packages.
  - A file is compared with the SHA-256 that its package recorded where it is newer than that record, otherwise by its size.
  - Packages that are not conda packages, such as those that uv or pip installed there, are neither compared nor kept when the environment is recreated.
author: "The allreduce.gpu authors (@allreduce)"
attributes:
  check_mode:
    description: Predicts changes without making them, even where no program is installed yet.
    support: full
  diff_mode:
    description: Shows the packages before and after, and the files that changed since they were installed.
    support: full
options:
  state:
    description:
      - V(present) installs O(lock), V(absent) removes the environment.
      - V(solved) changes nothing and returns the lock of O(specs).
    type: str
    choices: [present, absent, solved]
    default: present
  prefix:
    description: Absolute path of the environment. An existing directory must be a conda environment, or empty.
    type: path
    required: true
  lock:
    description:
      - Text of the lock, a line C(@EXPLICIT) and after it a line C(ADDRESS#sha256:DIGITS) for each package, as C(conda list --explicit
        --sha256) and C(micromamba env export --explicit) write it. Required with O(state=present).
    type: str
  specs:
    description: Requested packages, such as C(python=3.12). Required with O(state=solved).
    type: list
    elements: str
  channels:
    description: Channels to search with O(state=solved), by name or URL, in order of preference.
    type: list
    elements: str
    default: [conda-forge]
  allow_defaults:
    description:
      - Allow packages from Anaconda's own channels (C(defaults), C(anaconda), everything at C(repo.anaconda.com)), whose
        terms of service ask larger organisations for a licence.
    type: bool
    default: false
  program:
    description:
      - Path of micromamba, mamba, conda or role C(python_env)'s C(rattler). By default it is searched for in
        C(/opt/allreduce/conda/bin), in C(PATH), and where Miniforge, Miniconda and Anaconda are usually installed; the first that is
        new enough is used, and C(rattler) where there is none.
    type: path
"""

EXAMPLES = r"""
- name: Solve once
  allreduce.gpu.conda_env:
    state: solved
    prefix: /opt/allreduce/envs/main
    specs: [python=3.12, libjpeg-turbo]
  register: solution
  run_once: true

- name: Install the same on every node
  allreduce.gpu.conda_env:
    prefix: /opt/allreduce/envs/main
    lock: "{{ solution.lock }}"
  become: true

- name: Remove the environment
  allreduce.gpu.conda_env:
    prefix: /opt/allreduce/envs/main
    state: absent
  become: true
"""

RETURN = r"""
step:
  description: What was done, C(create), C(rebuild) or C(remove); null without a change.
  returned: with O(state=present) and O(state=absent)
  type: str
program:
  description: The program, null where none was found and none was needed.
  returned: with O(state=present) and O(state=solved)
  type: dict
  sample: {kind: micromamba, path: /opt/allreduce/conda/bin/micromamba, version: 2.3.0}
state:
  description: State in which the environment was found, C(absent), C(interrupted) or C(complete).
  returned: with O(state=present) and O(state=absent)
  type: str
differences:
  description: Packages that differed from the lock, with what was found; null for none.
  returned: with O(state=present)
  type: list
  elements: dict
changed_files:
  description: For each package with files that changed since it was installed, the first such file.
  returned: with O(state=present)
  type: dict
lock:
  description: The lock of O(specs).
  returned: with O(state=solved)
  type: str
findings:
  description: Why it failed, for programs. Decide by C(code).
  returned: success, and when it is refused
  type: list
  elements: dict
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.packages.conda_describe import as_shown, describe
from ..module_utils.packages.conda_environment import decide, reconcile, solve

SPEC = {
    "state": {"type": "str", "choices": ["present", "absent", "solved"], "default": "present"},
    "prefix": {"type": "path", "required": True},
    "lock": {"type": "str"},
    "specs": {"type": "list", "elements": "str"},
    "channels": {"type": "list", "elements": "str", "default": ["conda-forge"]},
    "allow_defaults": {"type": "bool", "default": False},
    "program": {"type": "path"},
}


def main():
    """Read, plan, apply."""
    module = AnsibleModule(
        argument_spec=SPEC,
        required_if=[("state", "present", ["lock"]), ("state", "solved", ["specs"])],
        supports_check_mode=True,
    )
    prefix = module.params["prefix"] = os.path.normpath(module.params["prefix"])
    if not prefix.startswith("/") or prefix.count("/") < 2:
        module.fail_json(msg="prefix is '%s': write an absolute path that is not directly below the root" % prefix)

    def run(command, environment):
        try:
            code, out, err = module.run_command(
                command, environ_update=environment, umask=0o022, handle_exceptions=False
            )
        except EnvironmentError as error:
            return 127, error.strerror
        return code, out + err if code else out

    wanted = dict(module.params, on_path=module.get_bin_path, check=module.check_mode)
    try:
        if wanted["state"] == "solved":
            answer = solve(wanted, run, module.tmpdir)
        else:
            answer = decide(wanted, run)
            if not (module.check_mode or answer["findings"]):
                answer["findings"] = reconcile(wanted, answer, run)
    except EnvironmentError as error:
        module.fail_json(msg="Environment %s: %s." % (prefix, error))
    if answer["findings"]:
        said = "; ".join(describe(one) for one in answer["findings"])
        findings = [as_shown(one) for one in answer["findings"]]
        module.fail_json(msg="Environment %s: %s." % (prefix, said), findings=findings)
    module.exit_json(changed=answer.get("step") is not None, **answer)


if __name__ == "__main__":
    main()
