# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refuse declarations of GPU settings that cannot be meant; what a GPU takes is known on its node alone. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....module_utils.settings.declaration import DeclarationError, parse


def refusal(declaration: Any) -> str:
    """Return why a value of gpu_settings_declaration is none, without a full stop; empty for one that can be meant, and for none at all."""
    try:
        parse([declaration] if isinstance(declaration, Mapping) else declaration or [])
    except DeclarationError as error:
        return str(error).rstrip(".")
    return ""
