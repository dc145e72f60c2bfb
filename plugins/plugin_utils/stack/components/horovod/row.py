# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a candidate of Horovod holds."""

from __future__ import annotations

from ...model import Candidate
from ...rows import Accelerator, HorovodRow


class HorovodChoice(HorovodRow):
    """A release of Horovod compiled for one target: GPUs, or processors only."""

    target: Accelerator


Horovod = Candidate[HorovodChoice]
