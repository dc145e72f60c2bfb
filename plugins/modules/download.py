#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: download
short_description: Download a file to the node, through its proxy
version_added: 0.1.0
description:
  - Downloads a file to the node where it is missing or different, and verifies it before it is moved into place.
  - >-
      Uses the proxies of the file that role C(base) wrote on the node. M(ansible.builtin.get_url) takes them from its environment only, which is part
      of sudo's command line and so of its log, with the password of the proxy.
author: "The allreduce.gpu authors (@allreduce)"
attributes:
  check_mode:
    description: Requests the file if it would be fetched, and keeps nothing.
    support: full
  diff_mode:
    description: Shows nothing.
    support: none
options:
  url:
    description: URL of the file, such as V(file:///…) for one on the node; with O(pages), its name.
    type: str
    required: true
  pages:
    description:
      - Places to search for the file by its name, in this order. Directories on the node, and URLs of pages that link to it, such as those of a package index.
    type: list
    elements: str
  path:
    description: Path of the file on the node. The directory must exist.
    type: path
    required: true
  checksum:
    description:
      - Checksum of the file, V(sha256:) and 64 hexadecimal digits. A file that has it is not downloaded again.
      - Leave it out only where something else verifies the file, such as the signature of a package.
    type: str
  mode:
    description: Permissions of the file.
    type: str
    default: "0644"
"""

EXAMPLES = r"""
- name: Fetch the archive
  allreduce.gpu.download:
    url: https://mirror.example.org/cudnn.tar.xz
    path: /opt/allreduce/cudnn/archive.tar.xz
    checksum: sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855

- name: Fetch a source from a package index
  allreduce.gpu.download:
    url: horovod-0.28.1.tar.gz
    pages: [/srv/wheels, https://mirror.example.org/simple/horovod/]
    path: /opt/allreduce/cache/horovod/horovod-0.28.1.tar.gz
    checksum: sha256:92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0
"""

RETURN = r""" # """

import os
import re

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host import download
from ..module_utils.host.ansible_module import move

HINTS = {
    "answers": "correct the address",
    "certificate": "name the authority that issued its certificate in base_ca_certificates",
    "disk": "free some space on the node, or make the directory writable",
    "proxy_refused": "write the proxy's user name and password into base_http_proxy and base_https_proxy",
    "unreachable": "correct the address, check the network, or set base_http_proxy if it needs a proxy",
}


def main():
    """Fetch the file next to its place, and move it there when it is the right one."""
    module = AnsibleModule(
        argument_spec={
            "url": {"type": "str", "required": True},
            "pages": {"type": "list", "elements": "str"},
            "path": {"type": "path", "required": True},
            "checksum": {"type": "str"},
            "mode": {"type": "str", "default": "0644"},
        },
        supports_check_mode=True,
    )
    path, wanted = module.params["path"], _wanted(module)
    changed = not wanted or download.sha256(path) != wanted
    if changed and module.check_mode:
        _fetch(module, None)
    elif changed:
        _replace(module, path, wanted)
    if os.path.exists(path):
        changed = module.set_mode_if_different(path, module.params["mode"], changed)
    module.exit_json(changed=changed)


def _address(module):
    """Return the address of the file, which pages may have to tell."""
    name, pages = module.params["url"], module.params["pages"]
    if pages is None:
        return name
    url, problems = download.find(name, pages, download.read_proxies())
    if url is None:
        module.fail_json(msg="No source has %s: %s" % (name, "; ".join(problems) or "no place is named"))
    return url


def _wanted(module):
    """Return the digits of the checksum; an empty string where none was asked for."""
    checksum = module.params["checksum"]
    if checksum is None:
        return ""
    found = re.match(r"sha256:([0-9a-fA-F]{64})\Z", checksum)
    if found is None:
        module.fail_json(msg="checksum is '%s': set it to sha256: and the 64 digits of the file" % checksum)
    return found.group(1).lower()


def _replace(module, path, wanted):
    new = path + ".part"  # always the same, so that what was left of an execution that was killed does not stay
    if os.path.lexists(new):
        os.unlink(new)
    os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    module.add_cleanup_file(new)
    address = _fetch(module, new)
    found = download.sha256(new)
    if wanted and found != wanted:
        url = download.without_password(address)
        module.fail_json(msg="The checksum of %s did not match: sha256:%s, not %s" % (url, found, wanted))
    move(module, new, path)


def _fetch(module, path):
    address = _address(module)
    problem = download.fetch(address, path, download.read_proxies())
    if problem:
        url = download.without_password(address)
        module.fail_json(msg="%s cannot be fetched: %s; %s" % (url, problem["detail"], HINTS[problem["code"]]))
    return address


if __name__ == "__main__":
    main()
