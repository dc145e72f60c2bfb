# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: whether only SHA-1 binds a key to its name."""

from __future__ import annotations

DOCUMENTATION = """
name: _openpgp_sha1_bound
short_description: Tell whether only SHA-1 binds an OpenPGP key to its name
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Newer policies, such as that of apt with sqv since February 2026, do not take such keys.
  - Reads an ASCII-armored public key file on the controller; no C(gpg) is needed anywhere.
options:
  _input:
    description: Content of the key file.
    type: str
    required: true
"""

EXAMPLES = """
- name: Refuse an outdated key
  ansible.builtin.assert:
    that: not (lookup('ansible.builtin.file', 'site-mirror.asc') | allreduce.gpu._openpgp_sha1_bound)
"""

RETURN = """
_value:
  description: Whether a key in the file has no certification with another hash.
  type: bool
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ansible.errors import AnsibleFilterError

from ..plugin_utils.packages.openpgp import sha1_bound


def openpgp_sha1_bound(text: str) -> bool:
    """Adapter: a refusal becomes Ansible's."""
    try:
        return sha1_bound(text)
    except (ValueError, IndexError) as error:
        raise AnsibleFilterError(f"The repository's key file cannot be used: {error}.") from error


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"_openpgp_sha1_bound": openpgp_sha1_bound}
