# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of the tables in data/stack next to their rows, as far as the resolver reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from .rows import Arch


class Conda(TypedDict):
    base_channel: str


class Repositories(TypedDict):
    base_url: str
    arch_directories: dict[Arch, str]
    origin: str
    label: str
    sha1_keys: list[str]
    retired_keys: list[str]


class Profile(TypedDict):
    request: Mapping[str, Any]  # judged as a user's own would be


class Profiles(TypedDict):
    profiles: dict[str, Profile]


class Subjects(TypedDict):
    """The same of the tables that belong to no component; Tables.beside has the others."""

    conda: Conda
    profiles: Profiles
    repositories: Repositories
