#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: stage
short_description: Copy a data set to a node and verify it
version_added: 0.1.0
description:
  - Copies the files of a data set and compares each with its SHA-256 in the data set's manifest.
  - >-
      Files are collected in a hidden directory next to their place and moved there with one rename when all of them are verified. What an interrupted
      run copied is kept and verified by the next one.
  - Everything is done with the rights of O(user) alone.
author: "The allreduce.gpu authors (@allreduce)"
attributes:
  check_mode:
    description: Predicts changes without making them.
    support: full
  diff_mode:
    description: Shows the data set before and after, and how much is copied.
    support: full
options:
  state:
    description: V(absent) removes the data set and the leftovers of interrupted runs.
    type: str
    choices: [present, absent]
    default: present
  source:
    description:
      - Absolute path of a directory that the node can read, such as one of a shared file system, or the C(http(s)) URL of a directory.
      - Required with O(state=present).
    type: str
    default: ''
  directory:
    description: Directory of data sets on the node. It must exist.
    type: path
    required: true
  name:
    description: Name of the data set, which is that of its directory in O(directory).
    type: str
    required: true
  manifest:
    description:
      - File of the source with the SHA-256 of each of its files, as C(sha256sum) writes it; files that it does not name are not copied.
    type: str
    default: SHA256SUMS
  checksum:
    description:
      - >-
          Checksum of the manifest, V(sha256:) and 64 hexadecimal digits. Required where O(source) is a URL. With it, a node that has the data set
          does not contact the source.
    type: str
    default: ''
  user:
    description: User who copies and owns the files.
    type: str
    required: true
  needs_mount:
    description: Refuse a O(directory) at which nothing is mounted.
    type: bool
    default: true
  verify:
    description: Verify the content of files that are there already, not only their names.
    type: bool
    default: false
  jobs:
    description: Number of files to copy in parallel.
    type: int
    default: 4
  timeout:
    description: Seconds after which copying stops. The next run continues.
    type: int
    default: 86400
"""

EXAMPLES = r"""
- name: Copy ImageNet from the shared file system
  allreduce.gpu.stage:
    source: /mnt/datasets/imagenet
    directory: /scratch
    name: imagenet
    user: trainer
  become: true
"""

RETURN = r"""
digest:
  description: SHA-256 of the manifest of the data set that exists then.
  returned: with O(state=present)
  type: str
files:
  description: Number of its files.
  returned: with O(state=present)
  type: int
copied:
  description: Number of those that were copied.
  returned: with O(state=present)
  type: int
bytes:
  description: Their size.
  returned: with O(state=present)
  type: int
findings:
  description: Why it failed, for programs. Decide by C(code).
  returned: success, and when it is refused
  type: list
  elements: dict
"""

import re

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host.as_user import as_user
from ..module_utils.storage.describe import describe
from ..module_utils.storage.staging import stage, unstage

SPEC = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "source": {"type": "str", "default": ""},
    "directory": {"type": "path", "required": True},
    "name": {"type": "str", "required": True},
    "manifest": {"type": "str", "default": "SHA256SUMS"},
    "checksum": {"type": "str", "default": ""},
    "user": {"type": "str", "required": True},
    "needs_mount": {"type": "bool", "default": True},
    "verify": {"type": "bool", "default": False},
    "jobs": {"type": "int", "default": 4},
    "timeout": {"type": "int", "default": 86400},
}
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")


def main():
    """Do the work as the user, and say it in words."""
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True)
    wanted = dict(module.params, checksum=module.params["checksum"].lower().replace("sha256:", "", 1))
    wrong = _wrong(wanted)
    if wrong:
        module.fail_json(msg=wrong)
    work = unstage if wanted["state"] == "absent" else stage
    try:
        answer = as_user(wanted["user"], lambda: work(wanted, module.check_mode), wanted["timeout"])
    except KeyError:
        module.fail_json(
            msg="%s is not a user of this node: create the user first, or set another one." % wanted["user"]
        )
    except (EnvironmentError, ValueError) as error:
        module.fail_json(msg="%s is not staged: %s." % (wanted["name"], error))
    findings, before = answer.pop("problems"), answer.pop("before")
    if findings:
        said = "; ".join(describe(one) for one in findings)
        module.fail_json(msg="%s is not staged: %s." % (wanted["name"], said), findings=findings)
    answer["diff"] = {"before": _words(wanted, before), "after": _words(wanted, answer.get("digest"), answer)}
    module.exit_json(findings=[], **answer)


def _wrong(wanted):
    """Return the sentence about what cannot be meant."""
    if not NAME.match(wanted["name"]) or not NAME.match(wanted["manifest"]):
        return (
            "name and manifest are '%(name)s' and '%(manifest)s'; write letters, digits, dots, dashes and underscores"
            % wanted
        )
    if wanted["checksum"] and not re.match(r"[0-9a-f]{64}\Z", wanted["checksum"]):
        return "checksum is '%(checksum)s'; write sha256: and the 64 digits of the manifest" % wanted
    if wanted["state"] == "absent" or wanted["source"].startswith("/"):
        return None if wanted["jobs"] > 0 else "jobs is %(jobs)s; write 1 or more" % wanted
    if not re.match(r"https?://[^/]", wanted["source"]):
        return (
            "source is '%(source)s'; write an absolute path, or an address that begins with http:// or https://"
            % wanted
        )
    return (
        None if wanted["checksum"] else "checksum is empty; write that of the manifest, for what comes from an address"
    )


def _words(wanted, digest, answer=None):
    """Return the text of a difference."""
    if digest is None:
        return "%(name)s is not there\n" % wanted
    copied = "%(copied)d of %(files)d files copied, %(bytes)d bytes\n" % answer if answer and answer["changed"] else ""
    return "%s has the manifest sha256:%s\n%s" % (wanted["name"], digest, copied)


if __name__ == "__main__":
    main()
