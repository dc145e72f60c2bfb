# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the package index said of some releases."""

from tests.unit.plugins.plugin_utils.releases.conftest import lock, release, requires

__all__ = ["lock", "release", "requires"]
