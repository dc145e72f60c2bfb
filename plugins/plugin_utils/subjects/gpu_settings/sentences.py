# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences for problems with what a user asks of role gpu_settings."""

from __future__ import annotations

SENTENCES = {
    "gpu_settings_declaration": (
        "{subject} ({scope}) cannot be applied: {reason}; 'ansible-doc allreduce.gpu.gpu_settings' lists the settings."
    ),
}
