# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences of module rdma: for people, nothing is decided by them."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from . import tuning_describe

SENTENCES = dict(
    tuning_describe.SENTENCES,
    command_failed="{subject} was not set, and the program ended with {status}: {reason}.",
    no_bridging="{subject} has no data centre bridging that iproute2's dcb can set: take it out of rdma_interfaces.",
)


def describe(problem):
    """Return the sentence for a problem."""
    return SENTENCES[problem["code"]].format(subject=problem["subject"], **problem["detail"])
