# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences for problems with what a user asks of role gpu_settings."""

from __future__ import annotations

from ...problems.sentence import Sentence

SENTENCES = {
    "gpu_settings_declaration": Sentence(
        "{subject} ({scope}) cannot be applied",
        "list the settings with 'ansible-doc allreduce.gpu.gpu_settings'",
        why="{reason}",
    ),
}
