# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of allreduce.gpu.download: a file of gigabytes takes minutes; Ansible prints nothing meanwhile."""

from __future__ import annotations

from ..plugin_utils.node.beat import Watched


class ActionModule(Watched):
    """Says every minute that the module still runs."""
