# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of allreduce.gpu.rdma: send the module only where the ports are not as declared."""

from __future__ import annotations

from ..plugin_utils.node.settings import SettingsAction


class ActionModule(SettingsAction):
    """Sends the module, unless the last measurement says that it has nothing to do."""

    MODULE = "allreduce.gpu.rdma"
