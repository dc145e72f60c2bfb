# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The option that modules which apply settings share."""

from __future__ import annotations


class ModuleDocFragment:
    """A name for what was declared."""

    DOCUMENTATION = r"""
options:
  applied:
    description:
      - A digest of the declaration, which the module notes until the next boot. The module that measures these settings returns it as
        C(applied) as long as they hold, so that M(allreduce.gpu.subject) has nothing to send.
    type: str
"""
