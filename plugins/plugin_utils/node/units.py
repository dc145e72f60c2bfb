# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The systemd units that nodes tell the state of: those that every node has, and what components and subjects declare."""

from __future__ import annotations

from ...module_utils.host.services import TIME_SERVICES
from ..drift.components import PACKAGED
from ..subjects import SUBJECTS

_DECLARED = [*(one.units for one in PACKAGED), *(one.units for one in SUBJECTS)]
UNITS = tuple(dict.fromkeys(unit for units in (TIME_SERVICES, *_DECLARED) for unit in units))
