# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver: its branches, where it comes from, and its kernel modules."""

from __future__ import annotations

from ...component import Component
from .candidates import drivers
from .row import Driver
from .rules import rule

DRIVER = Component(
    name="driver",
    form=Driver,
    reads=("driver", "driver_source", "kernel_modules"),
    candidates=drivers,
    rules=rule,
    required=True,
)
