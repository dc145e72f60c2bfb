# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The option that modules which apply settings share."""

from __future__ import annotations


class ModuleDocFragment:
    """What was measured of the last declaration."""

    DOCUMENTATION = r"""
options:
  applied:
    description:
      - What the module that measures these settings has just returned as C(applied). Where it is the digest of the other options, the
        node has what they declare, and nothing runs on it.
      - The controller side passes the digest of the options on, and the module notes it until the next boot.
    type: str
"""
