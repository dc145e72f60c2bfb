# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Derivations are tried on measured machines, too."""

from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.conftest import library, measure  # noqa: F401  # pylint: disable=unused-import
