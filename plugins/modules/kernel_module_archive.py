#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: kernel_module_archive
short_description: Copy a compiled kernel module of DKMS from one node to another
version_added: 0.1.0
description:
  - Packs the files that DKMS compiled for some kernels on one node, and puts them where DKMS of another node looks for what it has built. C(dkms
    install) then installs them without compiling.
  - >-
      The archive is refused where the module's version, its source, the kernel's headers, the RDMA stack or the configuration of DKMS differ from those
      with which it was compiled, and, where the kernel demands signatures, where DKMS of the two nodes signs with different keys. It may contain
      only files of kernel modules.
  - Anyone who controls the node that packs the archive can load code into the kernel of the node that unpacks it.
author: "The allreduce.gpu authors (@allreduce)"
attributes:
  check_mode:
    description: Predicts changes without making them.
    support: full
  diff_mode:
    description: Shows nothing.
    support: none
options:
  name:
    description: Name of the module in DKMS.
    type: str
    required: true
  kernels:
    description: Releases of the kernels. Required with every O(state) but V(absent).
    type: list
    elements: str
    default: []
  arch:
    description: Architecture, as DKMS names it.
    type: str
    default: x86_64
  state:
    description:
      - V(awaited) keeps DKMS from building the module for these kernels, so that packages can be installed before the archive arrives. A
        configuration of the module that an administrator wrote (C(/etc/dkms/<name>.conf)) is not touched; the module fails there.
      - V(packed) writes the archive of what is installed for these kernels.
      - V(unpacked) ends the waiting and puts the files of the archive in place.
      - V(absent) ends the waiting, and removes the archive.
    type: str
    choices: [awaited, packed, unpacked, absent]
    required: true
  path:
    description: Path of the archive.
    type: path
    default: /var/lib/allreduce/kernel-module.tar.gz
  root:
    description: Root directory of the node, for tests.
    type: path
    default: /
"""

EXAMPLES = r"""
- name: Pack the module on the node that compiled it
  allreduce.gpu.kernel_module_archive:
    name: nvidia
    kernels: [6.1.0-40-amd64]
    state: packed
  become: true

- name: Take it on a node to which the archive was copied
  allreduce.gpu.kernel_module_archive:
    name: nvidia
    kernels: [6.1.0-40-amd64]
    state: unpacked
  become: true
"""

RETURN = r"""
kernels:
  description: Kernels whose files were put in place.
  returned: with O(state=unpacked), except in check mode
  type: list
  elements: str
problem:
  description: Why it failed, for programs. Decide by C(code).
  returned: when it failed, except for errors of the file system
  type: dict
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host import kernel_module_archive as archive
from ..module_utils.host.secure_boot import read_secure_boot
from ..module_utils.machine.files import FileTree
from ..module_utils.packages.installed import os_release


def main():
    """Read the options, do what the state asks for."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "kernels": {"type": "list", "elements": "str", "default": []},
            "arch": {"type": "str", "default": "x86_64"},
            "state": {"type": "str", "choices": sorted(STATES), "required": True},
            "path": {"type": "path", "default": "/var/lib/allreduce/kernel-module.tar.gz"},
            "root": {"type": "path", "default": "/"},
        },
        required_if=[("state", state, ("kernels",)) for state in ("awaited", "packed", "unpacked")],
        supports_check_mode=True,
    )
    params = module.params
    try:
        place = archive.Place(params["name"], params["arch"], params["kernels"], params["root"])
        if module.check_mode:
            module.exit_json(changed=params["state"] != "absent" or archive.is_waiting(place))
        module.exit_json(**STATES[params["state"]](place, params["path"]))
    except archive.ArchiveError as error:
        module.fail_json(msg="%s." % error, problem=error.problem)
    except EnvironmentError as error:
        module.fail_json(msg="Module %s was not copied: %s." % (params["name"], error))


def awaited(place, dummy):
    """Keep DKMS from building."""
    return {"changed": archive.wait(place)}


def packed(place, path):
    """Write the archive."""
    archive.pack(place, path, _secure_boot(place)["fingerprint"])
    return {"changed": True}


def unpacked(place, path):
    """End the waiting and put the files in place."""
    archive.release(place)
    boot = _secure_boot(place)
    # Where the firmware could not be asked, the kernel may demand signatures.
    kernels = archive.unpack(place, path, boot["fingerprint"], boot["enforced"] is not False)
    return {"changed": True, "kernels": kernels}


def absent(place, path):
    """End the waiting and remove the archive."""
    found = os.path.exists(path)
    if found:
        os.unlink(path)
    return {"changed": archive.release(place) or found}


def _secure_boot(place):
    tree = FileTree(place.root)
    return read_secure_boot(tree, os_release(tree))


STATES = {"awaited": awaited, "packed": packed, "unpacked": unpacked, "absent": absent}

if __name__ == "__main__":
    main()
