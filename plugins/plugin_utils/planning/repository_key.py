# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Retired keys of NVIDIA's repository, where the inventory names one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..problems.problem import Problem

# The fingerprint, and the file or address of the key, which NVIDIA names by the end of its fingerprint: 7fa2af80.pub.
NAMES = ("cuda_repository_key_fingerprint", "cuda_repository_key")
NUMBER = re.compile(r"(?:^|/)(?:0x)?([0-9A-F]{8,40})(?:[.][A-Z]+)?$")


def retired_key(variables: Mapping[str, Any], stack: Mapping[str, Any]) -> list[Problem]:
    """Return the variables of a host that name a retired key, where its stack takes packages from the repository."""
    repository = stack.get("repository") or {}
    named = {name: NUMBER.search(str(variables.get(name) or "").replace(" ", "").upper()) for name in NAMES}
    today = {"today": repository.get("key_fingerprint") or "the one in its directory"}
    return [
        Problem("retired_key", name, {"value": variables[name], **today})
        for name, number in named.items()
        if number and any(key.endswith(number[1]) for key in repository.get("retired_keys") or ())
    ]
