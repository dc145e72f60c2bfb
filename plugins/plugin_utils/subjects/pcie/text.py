# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences about pairs of devices: for people, nothing is decided by them."""

from __future__ import annotations

from ...problems.problem import Problem

SENTENCES = {
    "pcie_translates": "the IOMMU translates for {subject} ({type})",
    "pcie_redirects": "ACS redirects at bridge {subject} ({bits})",
    "pcie_unreadable": "ACS of bridge {subject} could not be read",
    "pcie_hidden": "no bridge is visible above {subject}",
}
# In words, most hindering first; see judge.VERDICTS.
VERDICTS = {
    "translated": "translated by the IOMMU",
    "root_complex": "through the root complex",
    "redirected": "redirected by ACS",
    "unknown": "not known",
    "direct": "direct",
}


def sentence(reason: Problem) -> str:
    """Return the reason why a pair is not direct."""
    if reason.code == "pcie_root_complex":
        if reason.detail["same"]:
            return f"root ports of {reason.subject}"
        return f"host bridges {reason.subject} and {reason.detail['other']}"
    return SENTENCES[reason.code].format(subject=reason.subject, **reason.detail)
