# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences for problems with what a user asks of role nccl."""

from __future__ import annotations

from ...problems.sentence import Sentence

SENTENCES = {
    "nccl_no_variable": Sentence(
        "{variable} has {subject}, which is not an NCCL variable: those begin with NCCL_ and are in capitals",
        "correct it",
    ),
    "nccl_no_value": Sentence(
        "nccl_conf_variables sets {subject} to {value}, which NCCL cannot read from its file",
        "give one line of at most 1023 bytes without space at either end, or null to leave the variable to NCCL",
    ),
    "nccl_refused": Sentence(
        "nccl_conf_variables has {subject}, which is refused",
        "remove it",
        why="{reason}; {source}",
    ),
}
