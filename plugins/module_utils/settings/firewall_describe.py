# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences of module firewall: for people, nothing is decided by them."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

SENTENCES = {
    "command_failed": "{subject} ended with {status}: {reason}. The previous rules were restored.",
    "not_set": "{subject} does not take {value}: {reason}. The previous rules were restored.",
    "rolled_back": "No one confirmed the change in time, so the previous rules were restored; see the journal of {subject}.",
}


def describe(problem):
    """Return the sentence for a problem."""
    return SENTENCES[problem["code"]].format(subject=problem["subject"], **problem["detail"])
