# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that plugins about a measured node share."""

from __future__ import annotations


class ModuleDocFragment:
    """The input of filters that take a measured node."""

    DOCUMENTATION = r"""
options:
  _input:
    description: What M(allreduce.gpu.gpu_facts) measured, C(ansible_facts.gpu_node).
    type: dict
    required: true
"""
