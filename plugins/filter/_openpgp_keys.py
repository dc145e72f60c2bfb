# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the keys in an armored key file."""

from __future__ import annotations

DOCUMENTATION = """
name: _openpgp_keys
short_description: List the OpenPGP keys of a key file
author: The allreduce.gpu authors (@allreduce)
description:
  - Reads an ASCII-armored public key file with the program C(gpg) of the controller.
options:
  _input:
    description: Content of the key file.
    type: str
    required: true
"""

EXAMPLES = """
- name: Show whose key this is
  ansible.builtin.debug:
    msg: "{{ lookup('ansible.builtin.file', 'site-mirror.asc') | allreduce.gpu._openpgp_keys }}"
"""

RETURN = """
_value:
  description:
    - For each primary key C(fingerprint), 40 hexadecimal digits, and C(sha1_bound), whether only SHA-1 binds it to its names.
    - Newer policies, such as that of apt with sqv since February 2026, take no key that only SHA-1 binds to its names.
  type: list
  elements: dict
"""

# ruff: noqa: E402 (sanity wants the documentation first)
from ansible.errors import AnsibleFilterError

from ..plugin_utils.packages.openpgp import list_keys, parse_keys


def openpgp_keys(text: str) -> list[dict]:
    """Return [{fingerprint, sha1_bound}] of the keys in a text; raise AnsibleFilterError where it has none."""
    try:
        keys = parse_keys(list_keys(text))
    except ValueError as error:
        raise AnsibleFilterError(f"The repository's key file cannot be used: {error}.") from error
    return [{"fingerprint": key.fingerprint, "sha1_bound": key.sha1_bound} for key in keys]


class FilterModule:
    """Adapter for Ansible."""

    def filters(self):
        return {"_openpgp_keys": openpgp_keys}
