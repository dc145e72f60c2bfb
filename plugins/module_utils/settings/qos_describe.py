# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences of module qos: for people, nothing is decided by them."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

SENTENCES = {
    "command_failed": "{subject} ended with {status}: {reason}.",
}


def describe(problem):
    """Return the sentence for a problem."""
    return SENTENCES[problem["code"]].format(subject=problem["subject"], **problem["detail"])
