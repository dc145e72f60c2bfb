# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences for problems with what a user asks of role tuning."""

from __future__ import annotations

from ...problems.sentence import Sentence

SENTENCES = {
    "tuning_no_sysctl": Sentence(
        "tuning_sysctl has {subject} with the value {value}",
        "give a key such as vm.swappiness and its value, or null to leave the key alone",
    ),
    "tuning_refused_sysctl": Sentence(
        "tuning_sysctl sets {subject} to {value}, which is refused",
        "remove it",
        why="{reason}; {source}",
    ),
    "tuning_refused_argument": Sentence(
        "tuning_kernel_arguments has {subject}, which is refused",
        "remove it",
        why="{reason}; {source}",
    ),
    "tuning_unknown_argument": Sentence(
        "tuning_kernel_arguments has {subject}",
        "choose from {arguments}, and set others with the distribution's own tool",
    ),
    "tuning_unknown_limit": Sentence("tuning_limits has {subject}", "choose from {limits}"),
    "tuning_no_limit": Sentence(
        "tuning_limits has {subject} {value}",
        "set it to a number or, except for nofile, to unlimited",
    ),
    "tuning_no_name": Sentence("{variable} has '{subject}', which is not a valid name", "correct it"),
    "tuning_overridden": Sentence(
        "{subject} would not stay {value}: line {line} of {file} sets it to '{found}' after us",
        "remove that line, or leave the key alone with tuning_sysctl: {{{subject}: null}}",
    ),
    "tuning_logind_overridden": Sentence(
        "{subject} would not stay {value}: line {line} of {file} sets it to '{found}' after us",
        "remove that line, or leave it alone with tuning_keep_ipc: false",
    ),
    "tuning_huge_pages": Sentence(
        "{subject} {value} permanently takes {percent} % of memory",
        "set it to at most {most}, a tenth of it",
    ),
    "tuning_no_boot_loader": Sentence(
        "There is no known way to set {subject}: this node has neither grubby nor update-grub nor boot loader entries",
        "take it out of tuning_kernel_arguments",
    ),
    "tuning_argument_overridden": Sentence(
        "{subject} would not reach the kernel: {file} overwrites GRUB_CMDLINE_LINUX after us",
        "make its value begin with $GRUB_CMDLINE_LINUX, or rename it to sort before 90-allreduce.cfg",
    ),
    "tuning_argument_conflict": Sentence(
        "tuning_kernel_arguments has {subject}, and {found} is set elsewhere",
        "take one of them out",
    ),
}
