# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Callback progress for runs that have not enabled it: lines after a minute of silence, on a terminal as well.

Ansible loads the callbacks next to a playbook unasked, so runs of our playbooks need no configuration for it.
"""

from __future__ import annotations

from ansible import constants as C  # noqa: N812 (its usual name)
from ansible.plugins.loader import callback_loader

Progress = callback_loader.get("allreduce.gpu.progress", class_only=True)


class CallbackModule(Progress):
    """Adapter for Ansible."""

    CALLBACK_NAME = "allreduce_progress"
    CALLBACK_NEEDS_ENABLED = False

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._load_name = Progress._load_name  # whose options these are

    def is_off(self):
        return super().is_off() or Progress.CALLBACK_NAME in C.CALLBACKS_ENABLED

    def keeps_rows(self):
        return False
