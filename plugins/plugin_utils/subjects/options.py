# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of variables, read as Ansible reads those of a module's options."""

from __future__ import annotations

from typing import Any


def as_list(value: Any) -> list[Any]:
    """Return the list that a value stands for: a text with commas, or one value, is one, too."""
    if isinstance(value, str):
        return [one.strip() for one in value.split(",") if one.strip()]
    return list(value) if isinstance(value, (list, tuple)) else [] if value is None else [value]
