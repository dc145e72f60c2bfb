# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences of module tuning: for people, nothing is decided by them."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

# What is wrong, and what to do: the controller shows them on lines of their own.
PCIE = {
    "pcie_held_for_guests": (
        "Redirection by ACS stays: {devices} are held for guests, which it isolates",
        "release them, or set pcie_acs_redirect to keep",
    ),
    "pcie_iommu_unknown": (
        "Redirection by ACS stays: this kernel does not report whether the IOMMU translates for {devices}",
        "set pcie_acs_redirect to keep",
    ),
    "pcie_mediated": (
        "Redirection by ACS stays: the mediated devices {devices} are given to guests",
        "set pcie_acs_redirect to keep",
    ),
    "pcie_no_bridge": (
        "Redirection by ACS cannot be turned off here: no bridge above a GPU is visible, as in a virtual machine",
        "set pcie_acs_redirect to keep",
    ),
    "pcie_translated": (
        "Redirection by ACS stays: the IOMMU translates for {devices}",
        "boot with iommu=pt first",
    ),
}

SENTENCES = {
    "command_failed": "{subject} ended with {status}: {reason}.",
    "not_set": "{subject} does not take {value}: {reason}.",
    "not_kept": "{subject} was set to {value} and is {found}.",
}
SENTENCES.update((code, "{0}; {1}.".format(*levels)) for code, levels in PCIE.items())


def describe(problem):
    """Return the sentence for a problem."""
    values = {key: ", ".join(one) if isinstance(one, list) else one for key, one in problem["detail"].items()}
    return SENTENCES[problem["code"]].format(subject=problem["subject"], **values)
