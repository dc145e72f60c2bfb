#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: apt_untrusted_keys
short_description: Take OpenPGP keys out of what apt trusts for every repository
version_added: 0.1.0
description:
  - Removes keys from C(/etc/apt/trusted.gpg) and C(/etc/apt/trusted.gpg.d), where C(apt-key) put them, without that program
    and without C(gpg). A file that holds nothing else goes.
  - Keys that a source names with C(Signed-By) are not looked at.
author: "The allreduce.gpu authors (@allreduce)"
attributes:
  check_mode:
    description: Predicts changes without making them.
    support: full
  diff_mode:
    description: Names the files that change.
    support: partial
    details: Keyrings are binary.
options:
  fingerprints:
    description: Full fingerprints of the keys, 40 hexadecimal digits each.
    type: list
    elements: str
    required: true
  root:
    description: Root directory of the system, to prepare a mounted image.
    type: path
    default: /
"""

EXAMPLES = r"""
- name: No longer trust NVIDIA's key of 2016
  allreduce.gpu.apt_untrusted_keys:
    fingerprints: [AE09FE4BBD223A84B2CCFCE3F60F4B3D7FA2AF80]
"""

RETURN = r"""
changed_paths:
  description: Files that lost a key, or would lose one in check mode.
  returned: success
  type: list
  elements: str
  sample: [/etc/apt/trusted.gpg]
"""

import glob
import os

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host.ansible_module import replace_file
from ..module_utils.packages import keys as package_keys

PLACES = ("etc/apt/trusted.gpg", "etc/apt/trusted.gpg.d/*.gpg", "etc/apt/trusted.gpg.d/*.asc")


def main():
    """Plan every keyring, then write those that change."""
    spec = {
        "fingerprints": {"type": "list", "elements": "str", "required": True},
        "root": {"type": "path", "default": "/"},
    }
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    fingerprints = [one.replace(" ", "").upper() for one in module.params["fingerprints"]]
    plans = []
    for path in sorted(path for place in PLACES for path in glob.glob(os.path.join(module.params["root"], place))):
        try:
            with open(path, "rb") as stream:
                found = stream.read()
            wanted = package_keys.without(found, fingerprints)
        except (EnvironmentError, ValueError, IndexError) as error:
            module.warn("%s is left as it is, it cannot be read: %s." % (path, error))
            continue
        if wanted != found:
            plans.append((path, wanted))
    for path, wanted in plans if not module.check_mode else []:
        if not wanted.strip():
            os.unlink(path)
            continue
        replace_file(module, path, wanted)
    paths = [path for path, _wanted in plans]
    diff = [{"header": path, "before": "trusts a retired key\n", "after": "does not\n"} for path in paths]
    module.exit_json(changed=bool(paths), changed_paths=paths, diff=diff)


if __name__ == "__main__":
    main()
