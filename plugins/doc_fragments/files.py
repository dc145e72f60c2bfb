# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The option with which modules that apply settings take files."""

from __future__ import annotations


class ModuleDocFragment:
    """Files and links, such as those that apply a setting again at boot."""

    DOCUMENTATION = r"""
options:
  files:
    description: Files and links that belong to the settings, such as those that apply them at boot.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Absolute path.
        type: path
        required: true
      content:
        description: The whole text of a file.
        type: str
      mode:
        description: Permissions of a file as four octal digits in quotes.
        type: str
        default: '0644'
      link:
        description: What a link points to, in place of a file.
        type: str
"""
