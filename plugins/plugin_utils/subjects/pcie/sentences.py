# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences for problems with what a user asks of role pcie."""

from __future__ import annotations

from ....module_utils.settings.tuning_describe import PCIE
from ...problems.sentence import Sentence

SENTENCES = {
    "pcie_no_size": Sentence("pcie_max_read_request is {subject}", "choose from {sizes}"),
    # What module pcie_facts and the program at boot say, too.
    **{code: Sentence(what, fix) for code, (what, fix) in PCIE.items()},
}
