# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of allreduce.gpu.firewall: nothing runs on the node where the node's firewall is as declared."""

from __future__ import annotations

from ..plugin_utils.node.settings import SettingsAction


class ActionModule(SettingsAction):
    """Runs the module where it may have something to do."""

    MODULE = "allreduce.gpu.firewall"
