# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: fingerprints of the keys in an armored key file."""

from __future__ import annotations

DOCUMENTATION = """
name: _openpgp_fingerprints
short_description: Tell the fingerprints of OpenPGP keys
version_added: 0.1.0
author: The allreduce.gpu authors (@allreduce)
description:
  - Reads an ASCII-armored public key file on the controller; no C(gpg) is needed anywhere.
options:
  _input:
    description: Content of the key file.
    type: str
    required: true
"""

EXAMPLES = """
- name: Show whose key this is
  ansible.builtin.debug:
    msg: "{{ lookup('ansible.builtin.file', 'site-mirror.asc') | allreduce.gpu._openpgp_fingerprints }}"
"""

RETURN = """
_value:
  description: Fingerprints of the primary keys, 40 hexadecimal digits each.
  type: list
  elements: str
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ansible.errors import AnsibleFilterError

from ..plugin_utils.packages.openpgp import fingerprints


def openpgp_fingerprints(text: str) -> list[str]:
    """Adapter: a refusal becomes Ansible's."""
    try:
        return fingerprints(text)
    except (ValueError, IndexError) as error:
        raise AnsibleFilterError(f"The repository's key file cannot be used: {error}.") from error


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"_openpgp_fingerprints": openpgp_fingerprints}
