# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter: the interpreters in a list of downloads that have no checksum."""

from __future__ import annotations

DOCUMENTATION = r"""
name: _unchecked_builds
short_description: List the interpreters in a list of downloads that have no checksum
author: "The allreduce.gpu authors (@allreduce)"
description:
  - uv installs an interpreter without a SHA-256 in its list unchecked. This names them, so that a role can refuse such a list.
positional: python
options:
  _input:
    description: The list as text, in the format of C(UV_PYTHON_DOWNLOADS_JSON_URL).
    type: str
    required: true
  python:
    description: Version of Python, as C(3.10).
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Show what uv would not check
  ansible.builtin.debug:
    msg: "{{ lookup('ansible.builtin.file', 'downloads.json') | allreduce.gpu._unchecked_builds('3.10') }}"
"""

RETURN = r"""
_value:
  description: Names of the builds.
  type: list
  elements: str
  sample: [cpython-3.10.13-linux-x86_64-gnu]
"""

from ..plugin_utils.environments.downloads import unchecked_builds  # noqa: E402


class FilterModule:
    """The filter of this file."""

    def filters(self):
        """Return {name: function}."""
        return {"_unchecked_builds": unchecked_builds}
